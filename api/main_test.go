package api

import (
	"testing"

	"till/flow/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
