//go:build fdb

package fdbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/apple/foundationdb/bindings/go/src/fdb"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/kv/fdbkv"
)

// RequireVariable is the environment variable that, set to 1, makes tests fail
// rather than be skipped where there is no fdbserver.
const RequireVariable = "FUTURA_REQUIRE_FDB"

// BuggifyVariable is the environment variable that, set to 1, makes FoundationDB's
// client library inject faults of its own into all of the process: delays, lost
// replies, commits with an unknown result.
const BuggifyVariable = "FUTURA_FDB_BUGGIFY"

const skipped = "SKIP: no fdbserver on PATH; FoundationDB tests not run"

// startTimeout bounds how long a server takes to be ready.
const startTimeout = 3 * time.Minute

// Main starts a server, gives it to use, runs the tests of m, stops the server
// and ends the process. Without an fdbserver, use is given nil, on which
// ClusterFile skips its test.
//
// Checks, such as for leaked goroutines, run at the end and return what is
// wrong.
func Main(m *testing.M, use func(*Server), checks ...func() error) {
	os.Exit(run(m, use, checks))
}

func run(m *testing.M, use func(*Server), checks []func() error) int {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	server, err := Start(ctx)
	if errors.Is(err, exec.ErrNotFound) && os.Getenv(RequireVariable) != "1" {
		fmt.Fprintln(os.Stderr, skipped)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: "+err.Error())
		return 1
	}
	if err := Buggify(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: "+err.Error())
		return 1
	}
	use(server)
	code := m.Run()
	if server != nil {
		checks = append([]func() error{server.Stop}, checks...)
	}
	for _, check := range checks {
		if err := check(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, "FAIL: "+err.Error())
			code = 1
		}
	}
	return code
}

// Buggify turns faults of the client library on, if they are asked for. It must
// come before the first cluster is opened.
func Buggify() error {
	if os.Getenv(BuggifyVariable) != "1" {
		return nil
	}
	fmt.Fprintln(os.Stderr, "FoundationDB's client injects faults")
	return errors.Join(
		fdb.APIVersion(fdbkv.APIVersion),
		fdb.Options().SetClientBuggifyEnable(),
		fdb.Options().SetClientBuggifySectionActivatedProbability(50),
		fdb.Options().SetClientBuggifySectionFiredProbability(25),
	)
}

// IgnoreClient makes a search for leaked goroutines pass over the one that runs
// FoundationDB's client, which lives as long as the process.
func IgnoreClient() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/apple/foundationdb/bindings/go/src/fdb._Cfunc_fdb_run_network")
}
