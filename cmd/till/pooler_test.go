package main

import (
	"strings"
	"testing"

	"till/cmd/till/tilltest"
	"till/flow/store"
	"till/flow/store/storetest"
)

// Accounts, test and live are schemas of one database, and each connection says which it
// is for. A pooler that drops what a connection says would make one of the three: it is
// told apart from a server that is away, and nothing is made.
func TestAPoolerBeforePostgreSQLIsNamed(t *testing.T) {
	t.Parallel()
	own := ownDatabase(t, "pooled")
	at, line := storetest.Through(t, store.Config{URL: own})
	for name, pooling := range map[string]storetest.Pooling{"refuses": storetest.Refusing, "drops": storetest.Dropping} {
		line.Pool(pooling)
		for command, want := range map[string]string{
			"migrate": "till: a pooler stands between Till and PostgreSQL, ",
			"doctor":  "fail  database    A pooler stands between Till and PostgreSQL, ",
		} {
			out, err := tilltest.Output(t.Context(), t.TempDir(), nil, command, "--data-dir", "data", "--database-url", at.URL)
			if err == nil || !strings.Contains(out, want) || !strings.Contains(out, "the address of PostgreSQL itself") {
				t.Errorf("to a pooler that %s, %s says %v\n%s", name, command, err, out)
			}
		}
	}
	line.Pool(storetest.NotPooled)
	may, err := store.AccessTo(t.Context(), store.Config{URL: at.URL, Name: "public"})
	if err != nil || may.Made {
		t.Errorf("made in the schema of everybody: %+v, %v", may, err)
	}
}
