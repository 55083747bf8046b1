package circles_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/circles"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Example has two functions of one worker await each other, as its heartbeat says.
func Example() {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	c, err := fdbmodel.Open(ctx, db, "example", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	worker, err := c.Register(ctx, layout.WorkerInfo{Functions: []string{"go:pay"}, Capacity: layout.Resources{Slots: 2}})
	if err != nil {
		panic(err)
	}
	spec := layout.Spec{Function: "go:pay"}
	made, err := c.Submit(ctx, []fdbmodel.Submission{{Spec: spec}, {Spec: spec}})
	if err != nil {
		panic(err)
	}
	if _, err := worker.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 2}, Max: 2}); err != nil {
		panic(err)
	}
	a, b := made[0].ID, made[1].ID
	beat := layout.Heartbeat{Awaits: []layout.Await{
		{ID: a, For: b, Count: 1, Since: 1},
		{ID: b, For: a, Count: 1, Since: 2},
	}}
	if _, err := worker.Heartbeat(ctx, beat); err != nil {
		panic(err)
	}
	waits, err := circles.Read(ctx, c)
	if err != nil {
		panic(err)
	}
	circle, err := waits.Through(ctx, a)
	fmt.Println(len(circle), circle.Youngest() == b, err)
	// Output: 2 true <nil>
}
