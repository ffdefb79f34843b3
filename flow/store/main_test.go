package store_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"till/flow/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(envWriter) != "" {
		writeForEver()
		return
	}
	goleak.VerifyTestMain(storetest.Around(m))
}
