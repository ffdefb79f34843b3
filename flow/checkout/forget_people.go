package checkout

import (
	"context"
	"slices"
	"strings"

	"till/flow"
	"till/flow/store"
)

// Traces are what people who log in may have kept of a payer.
type Traces struct {
	Texts    []string         // that are nobody else's
	Things   []string         // ids of what is theirs
	Names    []string         // that they go by
	Projects []flow.ProjectID // whose sessions they had
}

// Names are the names that a payer goes by, and the projects whose customer they are.
func (p Payer) Names(ctx context.Context, r store.Reader) (names []string, of []flow.ProjectID, err error) {
	known, err := aboutOf(ctx, r, p)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range slices.Concat(p.Sessions, p.Beside) {
		of = append(of, s.Project)
	}
	slices.Sort(of)
	return known.names, slices.Compact(of), nil
}

// Forget puts a name that says nothing in the place of texts that say who a payer
// is: in the audit log, and in the searches that people keep. Of what was done about
// the payer's things it forgets why, which people wrote in words of their own, and of
// the searches those for the payer's number, however it was typed, and those for their
// name of whoever had them as a customer. It returns in how many rows they stood.
func (a *Accounts) Forget(ctx context.Context, of Traces, as string) (places int64, err error) {
	err = a.db.Update(ctx, func(tx *store.Tx) error {
		if places, err = tx.ForgetReasons(ctx, of.Things); err != nil {
			return err
		}
		accounts := []string{""} // operators see everybody's
		for _, id := range of.Projects {
			p, err := tx.Project(ctx, id)
			if err != nil && !notFound(err) {
				return err
			}
			accounts = append(accounts, p.Account)
		}
		dropped, err := tx.DropSearches(ctx, func(account, name, words string) bool {
			phone, is := flow.ReadPhone(words)
			return is && slices.Contains(of.Texts, string(phone)) ||
				slices.Contains(accounts, account) && (speakOf(words, of.Names) || speakOf(name, of.Names))
		})
		if err != nil {
			return err
		}
		places += dropped
		for _, text := range of.Texts {
			n, err := tx.Replace(ctx, text, as)
			if err != nil {
				return err
			}
			places += n
		}
		return tx.OweWipe(ctx)
	})
	return places, wrap("forget a payer", err)
}

// leastNamed is how much of a name says whose it is, in characters.
const leastNamed = 3

// speakOf says whether a few words speak of one of these names: by a whole word of
// it, or because each of them begins one.
func speakOf(words string, list []string) bool {
	typed := flow.NameWords(words)
	for _, name := range list {
		parts, begin := flow.NameWords(name), 0
		for _, w := range typed {
			if len([]rune(w)) < leastNamed {
				continue
			}
			if slices.Contains(parts, w) || slices.Contains(parts, strings.TrimSuffix(w, "s")) { // Ada's
				return true
			}
			if slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(part, w) }) {
				begin++
			}
		}
		if begin > 0 && begin == len(typed) {
			return true
		}
	}
	return false
}
