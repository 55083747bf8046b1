package peerworker_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerworker"
)

// A program that runs a Go function for a head. It needs the address of the head, and
// no access to its store. Run serves the head until its context ends.
func ExampleWorker() {
	w, err := peerworker.New(peerworker.Options{
		Heads: []string{"/ip4/127.0.0.1/tcp/9527/p2p/12D3KooWGRUaMvj4mqKKGkZ8dGgJGvJkGGqEHo2ug3cVZ8kqs3Nh"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = w.Register("shout", func(_ context.Context, args []byte) ([]byte, error) {
		return []byte(strings.ToUpper(string(args))), nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-w.Ready()
		cancel()
	}()
	fmt.Println(err, w.Run(ctx))
	// Output: <nil> <nil>
}

// A worker that keeps its key is the same peer after a restart.
func ExampleNew() {
	key, err := p2p.NewKey()
	if err != nil {
		fmt.Println(err)
		return
	}
	o := peerworker.Options{Key: key, AllowAnyHead: true, Listen: []string{"/ip4/127.0.0.1/tcp/0"}}
	first, err := peerworker.New(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := peerworker.New(o)
	fmt.Println(err, first.ID() == second.ID())
	// Output: <nil> true
}
