package jobqueue_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

func TestMain(m *testing.M) {
	if store := os.Getenv(lineStoreVariable); store != "" {
		os.Exit(lineMain(store))
	}
	storetest.Main(m)
}

// long is set for a run that takes its time.
var long = os.Getenv("FUTURA_LONG") == "1"

// elapse lets virtual time pass in a bubble of synctest.
func elapse(d time.Duration) { _ = clock.Wait(context.Background(), clock.Real{}, time.Now().Add(d)) }
