package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// many is how many sessions BenchmarkSearch looks among.
func many(b *testing.B) int {
	b.Helper()
	n, err := strconv.Atoi(os.Getenv("TILL_SEARCH_SESSIONS"))
	if err != nil {
		n = 1_000_000
	}
	return n
}

// The names and amounts of the sessions that are looked among.
var (
	firstNames = strings.Fields(`Ada Adaeze Adebayo Amaka Aminu Bola Bukola Chidi Chinedu Chioma Danjuma Ebele Efe Emeka Fatima Femi Funke Gbenga Halima Ibrahim
 Ifeoma Ijeoma Jide Kemi Kunle Lekan Maryam Musa Ngozi Nkechi Nneka Obinna Ola Oluwaseun Osas Rukayat Sade Sani Segun Shehu Tayo Temitope Tobi Tunde Uche
 Usman Wale Yakubu Yemi Zainab`)
	lastNames = strings.Fields(`Abiola Abubakar Adeleke Adeyemi Afolabi Akande Akpan Aliyu Balogun Bello Chukwu Danladi Edet Eze Garba Idris Igwe Ike Jimoh Lawal
 Mohammed Nnamdi Nwosu Obi Odili Ogunleye Ojo Okafor Okeke Okonkwo Okoro Olawale Oni Onyeka Salami Sanusi Suleiman Umar Uzor Yusuf`)
	amounts = []flow.Kobo{100_000, 150_000, 200_000, 250_000, 300_000, 450_000, 500_000, 750_000, 1_000_000, 1_500_000, 2_000_000, 5_000_000}
)

// crowd fills a database with sessions of forty projects, the last half of them
// of one: a third with a name and a phone, one in ten with an account to pay to,
// one in fifty paid with too little.
func crowd(b *testing.B, db *store.DB, n int) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	const atOnce = 2000
	step := 90 * 24 * time.Hour / time.Duration(n)
	for from := 0; from < n; from += atOnce {
		update(b, db, func(ctx context.Context, tx *store.Tx) error {
			for i := from; i < min(from+atOnce, n); i++ {
				at := noon.Add(step * time.Duration(i))
				s := session(0)
				s.ID = flow.SessionID(flow.FirstID(flow.PrefixSession, at)[:len(flow.PrefixSession)+10] + fmt.Sprintf("%016d", i))
				s.Project, s.CreatedAt, s.ExpiresAt = flow.ProjectID(fmt.Sprintf("wsp_prj_%02d", random.IntN(40))), at, at.Add(24*time.Hour)
				if i%2 == 0 {
					s.Project = "wsp_prj_01"
				}
				s.Amount = amounts[random.IntN(len(amounts))]
				if i%3 == 0 {
					s.Amount = flow.Kobo(100 * (100 + random.IntN(100_000)))
				}
				s.CustomerEmail, s.Reference = fmt.Sprintf("payer%d@example.com", random.IntN(n)), fmt.Sprintf("order-%d", i)
				if i%3 == 0 {
					s.CustomerName = firstNames[random.IntN(len(firstNames))] + " " + lastNames[random.IntN(len(lastNames))]
					s.CustomerPhone = flow.Phone(fmt.Sprintf("23480%08d", random.IntN(n)))
				}
				if added, err := tx.AddSession(ctx, s); err != nil || !added {
					return fmt.Errorf("add session %d: %v %w", i, added, err)
				}
				if i%10 == 0 {
					a := attempt(i, s.ID)
					a.ID, a.Reference, a.Instructions = flow.AttemptID(fmt.Sprintf("wsp_att_%d", i)), fmt.Sprintf("wsp_ref_%d", i), &flow.Instructions{AccountNumber: fmt.Sprintf("%010d", i)}
					if err := tx.SaveAttempt(ctx, a); err != nil {
						return err
					}
				}
				if i%50 == 0 {
					p := payment(i, s.ID, flow.Partial)
					p.ID, p.Project, p.Amount, p.Applied, p.RailTransactionID = flow.PaymentID(flow.FirstID(flow.PrefixPayment, at.Add(time.Hour))[:len(flow.PrefixPayment)+10]+fmt.Sprintf("%016d", i)), s.Project, 450_000, 450_000, fmt.Sprintf("rail-%d", i)
					if err := tx.AddPayment(ctx, p, []flow.Posting{{Account: flow.RailClearing, Amount: 450_000}, {Account: flow.Unapplied, Amount: -450_000}}); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}

// BenchmarkSearch looks for what payers say among a million sessions (or as many
// as TILL_SEARCH_SESSIONS says), as a merchant's supporter and as an operator. It
// reports the median and the slowest of each in milliseconds, and the median as a
// multiple of what it takes to read one session by its id in the same minute: that
// compares across machines.
//
//	go test ./flow/store -run '^$' -bench Search -benchtime 20x -timeout 30m
func BenchmarkSearch(b *testing.B) {
	db := storetest.Open(b, storetest.SQLite(b, store.Checkout))
	n := many(b)
	began := time.Now()
	crowd(b, db, n)
	b.Logf("%d sessions were made in %v", n, time.Since(began).Round(time.Second))
	now := noon.AddDate(0, 0, 89)
	newest, _, err := db.Search(b.Context(), store.SearchFilter{Project: "wsp_prj_01", Limit: 1})
	if err != nil || len(newest) != 1 {
		b.Fatal(newest, err)
	}
	one := newest[0].Session
	point := timed(b, 200, func() {
		if _, err := db.Session(b.Context(), one.ID); err != nil {
			b.Fatal(err)
		}
	})
	for _, project := range []flow.ProjectID{"wsp_prj_01", ""} {
		who := "merchant"
		if project == "" {
			who = "operator"
		}
		for _, typed := range []string{
			"", "yesterday", "yesterday 4 pm", "4500", "4500 yesterday", "4500 21 may", "1234.56", "ada", "ad", "ada okafor", "ada 4500", "ada okafor yesterday",
			"order-600000", "payer77@example.com", "08000000077", "0000600000", "wsp_ref_600000", string(one.ID), "nobody at all",
		} {
			b.Run(who+"/"+strings.ReplaceAll(typed, " ", "_"), func(b *testing.B) {
				f := store.SearchFilter{Search: flow.ReadSearch(typed, now), Project: project, Limit: 25}
				took := timed(b, b.N, func() {
					if _, _, err := db.Search(b.Context(), f); err != nil {
						b.Fatal(err)
					}
				})
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/median")
				b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms/slowest")
				b.ReportMetric(float64(took[len(took)/2])/float64(point[len(point)/2]), "points")
				if limit := 100 * time.Millisecond; took[len(took)/4] > limit { // others may use the machine
					b.Errorf("%q took %v or more in three of four, more than %v", typed, took[len(took)/4], limit)
				}
			})
		}
	}
}

// timed runs something so often and returns how long each took, shortest first.
func timed(b *testing.B, times int, do func()) []time.Duration {
	b.Helper()
	var list []time.Duration
	for range times {
		began := time.Now()
		do()
		list = append(list, time.Since(began))
	}
	slices.Sort(list)
	return list
}
