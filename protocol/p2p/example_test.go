package p2p_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/protocol/p2p"
)

func Example() {
	ctx := context.Background()
	head, err := p2p.Open(ctx, p2p.Options{}) // with a new key, on loopback
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = head.Close() }()
	head.OnCall(func(_ context.Context, _ p2p.PeerID, message []byte) []byte {
		return append([]byte("hello, "), message...)
	})
	if err := head.Start(); err != nil {
		fmt.Println(err)
		return
	}

	worker, err := p2p.Open(ctx, p2p.Options{Listen: []string{}}) // dials only
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = worker.Close() }()
	to, err := worker.Connect(ctx, head.Addrs()[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := worker.Call(ctx, to, []byte("worker"))
	fmt.Println(string(answer), err)
	// Output: hello, worker <nil>
}
