package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
)

// childOwner makes a process own the embedded store in a directory.
const childOwner = "FUTURA_BENCH_OWNER"

// StartOwner starts a process that has the embedded store in dir open and serves it, and returns
// the name under which others open it. The process ends with stop, or with this one.
func StartOwner(ctx context.Context, dir string) (store string, stop func() error, err error) {
	owner, err := startChild(ctx, childOwner+"="+dir)
	if err != nil {
		return "", nil, err
	}
	if _, err := bufio.NewReader(owner.out).ReadString('\n'); err != nil {
		return "", nil, errors.Join(fmt.Errorf("bench: the process that should own the store: %w", err), owner.stop())
	}
	return "remote:unix:" + filepath.Join(dir, "store.sock"), owner.stop, nil
}

// own owns a store until in ends.
func own(dir string, in io.Reader, out io.Writer) error {
	db, err := kvopen.Open(context.Background(), "embedded:"+dir, kvopen.Options{Share: true})
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintln(out, "serving"); err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	return errors.Join(err, db.Close())
}
