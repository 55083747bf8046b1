package fdbmodel

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

func errIDInUse(s *Submission, differs string) error {
	if s.Key != "" {
		return fmt.Errorf("%w: %s, by the key %.80q, with other %s: use another key, or submit what was submitted before",
			ErrIDInUse, s.ID, s.Key, differs)
	}
	return fmt.Errorf("%w: %s, with other %s: use another id, or submit what was submitted before", ErrIDInUse, s.ID,
		differs)
}

// requireSame returns ErrIDInUse if the existing future is not what s describes.
func (c *Cluster) requireSame(ctx context.Context, tx kv.Reader, old *layout.Row, s *Submission) error {
	differs, err := c.otherThan(ctx, tx, old, s)
	if err == nil && differs != "" {
		err = errIDInUse(s, differs)
	}
	return err
}

// otherThan returns what the existing future has that s has not, empty if s
// describes it.
func (c *Cluster) otherThan(ctx context.Context, tx kv.Reader, old *layout.Row, s *Submission) (string, error) {
	differs := otherWork(old.Spec, &s.Spec)
	if differs != "" || !old.Spec.ArgsKey {
		return differs, nil
	}
	args, err := tx.Get(c.keys.Args(old.ID)).Wait(ctx)
	if !bytes.Equal(args, s.Args) {
		differs = differentArguments
	}
	return differs, err
}

const differentArguments = "arguments"

// otherWork returns which of the fields that determine the result differ, empty if
// none does. Large arguments are compared by their hash, which their reference holds.
func otherWork(a, b *layout.Spec) string {
	switch {
	case a.Function != b.Function:
		return "function"
	case a.Codec != b.Codec:
		return "codec"
	case a.Queue != b.Queue:
		return "queue"
	case a.ArgsSize != b.ArgsSize, !bytes.Equal(a.Args, b.Args), a.ArgsKey != b.ArgsKey, !sameRef(a.ArgsRef, b.ArgsRef):
		return differentArguments
	case !bytes.Equal(a.Inputs, b.Inputs), !sameRef(a.InputsRef, b.InputsRef):
		return "inputs"
	case a.Lane != b.Lane:
		return "lane"
	case !slices.Equal(a.Argv, b.Argv):
		return "argv"
	case !maps.Equal(a.Env, b.Env):
		return "environment"
	default:
		return ""
	}
}

func sameRef(a, b *layout.ChunkRef) bool { return a == b || a != nil && b != nil && *a == *b }
