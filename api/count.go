package api

import (
	"math"
	"strconv"
	"time"

	"till/flow"
)

// bucket is what a call is counted against.
type bucket struct {
	policy string // what it is called in the headers
	name   string // begins with what it is of: no two kinds share a bucket
	limit  Limit
}

// payers is how many payers at their fastest it takes to use up a public key.
const payers = 10

// forOne is what one payer may have of a public key that many share.
func (l Limit) forOne() Limit { return PerSecond(l.PerSecond / payers) }

// limits are those of this server, none where it does not count.
func (s *Server) limits() LimiterConfig {
	if s.cfg.Limits == nil {
		return LimiterConfig{}
	}
	return s.cfg.Limits.cfg
}

// keyBucket is that of a call's key.
func (s *Server) keyBucket(c *call) bucket {
	limit := s.limits().Test
	if c.key.Environment == flow.Live {
		limit = s.limits().Live
	}
	return bucket{"key", "key:" + c.key.ID, limit}
}

// countKey counts a call against its key.
func (s *Server) countKey(c *call) error { return s.count(c, s.keyBucket(c)) }

// countPayer counts a call of a page against the session that it pays, and only
// what that lets through against the page's key: the key is in every payer's
// page, and none of them is to keep the others out.
func (s *Server) countPayer(c *call, id flow.SessionID) error {
	key := s.keyBucket(c)
	return s.count(c, bucket{"session", "session:" + string(id), key.limit.forOne()}, key)
}

// countAccount counts a call of a dashboard against whose it is.
func (s *Server) countAccount(c *call) error {
	return s.count(c, bucket{"account", "account:" + c.token.Account, s.limits().Test})
}

// countForm counts a form of the console against who sends it. People type: they have
// what one payer has.
func (s *Server) countForm(c *call, who string) error {
	if who == "" {
		return s.countAddress(c)
	}
	return s.count(c, bucket{"person", "person:" + who, s.limits().Test.forOne()})
}

// countAddress counts a call that nobody answers for against where it comes
// from: it has no key that holds, or one that everybody can read in a page.
func (s *Server) countAddress(c *call) error {
	return s.count(c, bucket{"address", "from:" + c.address(), s.limits().Address})
}

// wrongKey counts a call whose key does not hold, and says which refusal it gets.
func (s *Server) wrongKey(c *call, err error) error {
	if kind, _ := classOf(flow.CodeOf(err)); kind.kind != "authentication" {
		return err // the store's trouble is not the caller's
	}
	if limited := s.countAddress(c); limited != nil {
		return limited
	}
	return err
}

// count takes a token of one bucket after the other until one has none, and says
// in the headers how that one stands, or else the first.
func (s *Server) count(c *call, buckets ...bucket) error {
	if s.cfg.Limits == nil {
		return nil
	}
	for i, b := range buckets {
		t := s.cfg.Limits.take(c.ctx, b.name, b.limit)
		if i == 0 || !t.ok {
			c.tellLimit(b.policy, t)
		}
		if !t.ok {
			refused := flow.Refuse(flow.CodeRateLimited, "Too many calls: %d a second are let through, %d at once. Wait as long as Retry-After says.", b.limit.PerSecond, b.limit.Burst)
			refused.RetryAfter = t.wait
			return refused
		}
	}
	return nil
}

// tellLimit says in the headers how a bucket stands, in the words of
// draft-ietf-httpapi-ratelimit-headers-10: the quota q is all that a full bucket
// holds, the window w the seconds in which that many come back. The three others
// are what its drafts up to the sixth had, with the same numbers.
func (c *call) tellLimit(policy string, t taken) {
	quota, left, reset := strconv.Itoa(t.limit.Burst), strconv.Itoa(t.left), seconds(t.reset)
	window := strconv.Itoa((t.limit.Burst + t.limit.PerSecond - 1) / t.limit.PerSecond)
	h := &c.http.Context().Response.Header
	h.Set("RateLimit-Policy", `"`+policy+`";q=`+quota+";w="+window)
	h.Set("RateLimit", `"`+policy+`";r=`+left+";t="+reset)
	h.Set("RateLimit-Limit", quota)
	h.Set("RateLimit-Remaining", left)
	h.Set("RateLimit-Reset", reset)
}

// seconds is a time in whole seconds, none too few.
func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
