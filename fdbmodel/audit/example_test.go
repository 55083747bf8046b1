package audit_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
)

func ExampleCheck() {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	cluster, err := fdbmodel.Open(ctx, db, "shop", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	submitted, err := cluster.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:price"}}})
	if err != nil {
		panic(err)
	}
	report, err := audit.Check(ctx, cluster, audit.Options{})
	fmt.Println(report.Futures, "future,", report.Broken, "problems,", err)

	// A program outside of Futura removes a key.
	_, err = kv.Transact(ctx, db, kv.Retry{}, func(tx kv.Attempt) error {
		tx.Clear(cluster.Keys().Spec(submitted[0].ID))
		return nil
	})
	if err != nil {
		panic(err)
	}
	report, err = audit.Check(ctx, cluster, audit.Options{})
	fmt.Println(report.Problems[0].Invariant, report.Broken > 0, err)
	// Output:
	// 1 future, 0 problems, <nil>
	// ready true <nil>
}
