package mongostore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/batch/mongostore"
)

// A mistake in the URI is reported before anything is connected.
func ExampleOpen() {
	_, err := mongostore.Open(context.Background(), mongostore.Options{URI: "localhost"})
	fmt.Println(errors.Is(err, mongostore.ErrBadURI))
	// Output: true
}
