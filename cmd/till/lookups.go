package main

import (
	"errors"
	"strings"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// merchantsLookupsCmd lists who looked people up in a register.
type merchantsLookupsCmd struct {
	environment

	Project string        `arg:"" help:"Id of the project: wsp_prj_…"`
	Since   time.Duration `help:"Only those of the last while, as 720h." placeholder:"720h"`
}

func (merchantsLookupsCmd) Help() string {
	return "Example:\n\n    till merchants lookups wsp_prj_01jd… --live --since 720h\n\n" +
		"One line for each BVN or NIN that was looked up, oldest first: when, with which key, the end of the number, what for and what came of it. " +
		"These lines stay when the answers themselves are forgotten. That you looked stands in the audit log."
}

// lookupsPage is how many look-ups are read at a time.
const lookupsPage = 500

// lookupLine is a look-up as it is listed.
type lookupLine struct {
	ID        flow.VerificationID     `json:"id"`
	At        string                  `json:"at"`
	Key       string                  `json:"key"`
	Type      flow.IdentityType       `json:"type"`
	Number    string                  `json:"numberMasked"`
	Outcome   flow.VerificationStatus `json:"status"`
	Reason    string                  `json:"reason"`
	Purpose   string                  `json:"purpose"`
	Completed string                  `json:"completedAt"`
}

// Run prints one line for each look-up, oldest first.
func (c *merchantsLookupsCmd) Run(w *world) error {
	if c.Since < 0 {
		return usageError{errors.New("--since is how long ago it begins, as 720h")}
	}
	if err := known(w, c.Settings, c.Project); err != nil {
		return err
	}
	var from time.Time
	if c.Since > 0 {
		from = time.Now().Add(-c.Since)
	}
	err := withAccounts(w, c.Settings, func(a *checkout.Accounts) error {
		return keepAct(w, a, "merchant.lookups", c.Project, "")
	})
	if err != nil {
		return err
	}
	list := []lookupLine{}
	err = c.beside(w, "nobody was looked up", func(db *store.DB) error {
		return eachLookUp(w, db, flow.ProjectID(c.Project), from, func(l store.LookUp) {
			list = append(list, lookupLine{l.Verification, flow.Stamp(l.At), l.Key, l.Type, l.Mask, l.Outcome, l.Reason, l.Purpose, flow.Stamp(l.EndedAt)})
		})
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(w, list)
	}
	return printTable(w, "AT\tKEY\tTYPE\tNUMBER\tOUTCOME\tPURPOSE\tLOOK-UP", list, func(l lookupLine) string {
		outcome := string(l.Outcome)
		if l.Reason != "" {
			outcome += " (" + l.Reason + ")"
		}
		return strings.Join([]string{l.At, l.Key, string(l.Type), l.Number, outcome, l.Purpose, string(l.ID)}, "\t")
	})
}

// eachLookUp hands a project's look-ups over, a part at a time: those of the last
// moment of a part are read again with the next one.
func eachLookUp(w *world, db *store.DB, project flow.ProjectID, from time.Time, each func(store.LookUp)) error {
	seen := map[flow.VerificationID]bool{}
	for {
		list, err := db.LookUps(w.ctx, project, from, lookupsPage+len(seen))
		if err != nil {
			return err
		}
		whole := len(list) < lookupsPage+len(seen)
		for _, l := range list {
			if seen[l.Verification] {
				continue
			}
			each(l)
			if l.At.After(from) {
				clear(seen)
				from = l.At
			}
			seen[l.Verification] = true
		}
		if whole {
			return nil
		}
	}
}
