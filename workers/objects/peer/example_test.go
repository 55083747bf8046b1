package peer_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/peer"
)

func Example() {
	const token = "draw 32 bytes with crypto/rand"
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "o-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	// One process holds the object and serves it.
	holder, err := objects.Open(objects.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer holder.Close()
	ref, err := holder.PutBytes(ctx, []byte("content"), objects.PutOptions{})
	if err != nil {
		log.Fatal(err)
	}
	l, err := peer.ListenUnix(dir, "holder")
	if err != nil {
		log.Fatal(err)
	}
	address := "unix:" + l.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- peer.Serve(ctx, l, holder, peer.ServerOptions{Token: token}) }()

	// Another gets it, with the name and the address.
	mine, err := objects.Open(objects.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer mine.Close()
	client, err := peer.NewClient(peer.Options{Token: token})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	object, err := client.Open(ctx, mine, ref, address)
	if err != nil {
		log.Fatal(err)
	}
	content, err := io.ReadAll(object)
	fmt.Println(string(content), err, object.Close())
	cancel()
	fmt.Println(<-ended)
	// Output:
	// content <nil> <nil>
	// <nil>
}
