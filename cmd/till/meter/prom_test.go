package meter_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// scrapes keeps what was scraped, as a Prometheus would.
type scrapes struct {
	series map[uint64]*scraped
}

type scraped struct {
	labels labels.Labels
	points []chunks.Sample
}

// point is one sample.
type point struct {
	at    int64
	value float64
}

func (p point) T() int64                    { return p.at }
func (p point) F() float64                  { return p.value }
func (point) H() *histogram.Histogram       { return nil }
func (point) FH() *histogram.FloatHistogram { return nil }
func (point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample         { return p }

// up is what Prometheus itself adds for each target: 0 where it did not answer.
func (s *scrapes) up(instance string, at time.Time, value float64) {
	s.add("up", at, value, "job", "till", "instance", instance)
}

// scrape keeps everything that a registry shows at a time.
func (s *scrapes) scrape(t *testing.T, from prometheus.Gatherer, at time.Time) {
	t.Helper()
	s.up("this", at, 1)
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			s.keep(f.GetName(), m, at)
		}
	}
}

func (s *scrapes) keep(name string, m *dto.Metric, at time.Time) {
	own := []string{}
	for _, l := range m.GetLabel() {
		own = append(own, l.GetName(), l.GetValue())
	}
	switch {
	case m.Counter != nil:
		s.add(name, at, m.GetCounter().GetValue(), own...)
	case m.Gauge != nil:
		s.add(name, at, m.GetGauge().GetValue(), own...)
	case m.Histogram != nil:
		h := m.GetHistogram()
		for _, b := range h.GetBucket() {
			s.add(name+"_bucket", at, float64(b.GetCumulativeCount()), append(slices.Clone(own), "le", floatText(b.GetUpperBound()))...)
		}
		s.add(name+"_bucket", at, float64(h.GetSampleCount()), append(slices.Clone(own), "le", "+Inf")...)
		s.add(name+"_sum", at, h.GetSampleSum(), own...)
		s.add(name+"_count", at, float64(h.GetSampleCount()), own...)
	}
}

func (s *scrapes) add(name string, at time.Time, value float64, own ...string) {
	if s.series == nil {
		s.series = map[uint64]*scraped{}
	}
	set := labels.FromStrings(append(own, labels.MetricName, name)...)
	one := s.series[set.Hash()]
	if one == nil {
		one = &scraped{labels: set}
		s.series[set.Hash()] = one
	}
	one.points = append(one.points, point{at.UnixMilli(), value})
}

// Querier implements storage.Queryable.
func (s *scrapes) Querier(from, to int64) (storage.Querier, error) { return asked{s, from, to}, nil }

type asked struct {
	s        *scrapes
	from, to int64
}

// Select implements storage.Querier.
func (q asked) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var out []storage.Series
	for _, one := range q.s.series {
		fits := !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) })
		var within []chunks.Sample
		for _, p := range one.points {
			if p.T() >= q.from && p.T() <= q.to {
				within = append(within, p)
			}
		}
		if fits && len(within) > 0 {
			out = append(out, storage.NewListSeries(one.labels, within))
		}
	}
	slices.SortFunc(out, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &found{list: out, at: -1}
}

// LabelValues implements storage.Querier; no expression asks for them.
func (asked) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.Querier; no expression asks for them.
func (asked) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.Querier.
func (asked) Close() error { return nil }

// found is a storage.SeriesSet.
type found struct {
	list []storage.Series
	at   int
}

func (f *found) Next() bool                      { f.at++; return f.at < len(f.list) }
func (f *found) At() storage.Series              { return f.list[f.at] }
func (*found) Err() error                        { return nil }
func (*found) Warnings() annotations.Annotations { return nil }

// fires says whether an expression gives anything at a time.
func (s *scrapes) fires(t *testing.T, engine *promql.Engine, expr string, at time.Time) bool {
	t.Helper()
	q, err := engine.NewInstantQuery(t.Context(), s, nil, expr, at)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer q.Close()
	res := q.Exec(t.Context())
	if res.Err != nil {
		t.Fatalf("%s: %v", expr, res.Err)
	}
	v, err := res.Vector()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return len(v) > 0
}
