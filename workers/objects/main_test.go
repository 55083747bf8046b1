package objects

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// holdDir makes the test's process hold objects in a directory, until it is
// killed or its standard input ends.
const holdDir = "FUTURA_TEST_HOLD_OBJECTS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdDir); dir != "" {
		if err := hold(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// hold puts objects of all sizes in memory and on disk, and says so.
func hold(dir string) error {
	s, err := Open(Options{Memory: 4 << 20, Dir: dir, Disk: 64 << 20})
	if err != nil {
		return err
	}
	for i, size := range append(sizes, sizes...) {
		if _, err := s.PutBytes(context.Background(), someBytes(size, uint64(i)), PutOptions{}); err != nil {
			return err
		}
	}
	fmt.Println(s.Stats().DiskUsed)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
