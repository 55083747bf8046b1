package mongostore

import (
	"context"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/futura-run/futura/batch"
)

// A document has at most 16 MiB, so an output of more than largeOutput is kept
// in documents of its own, of outputPart each.
const (
	largeOutput = 4 << 20
	outputPart  = 8 << 20
)

// outputDocument is a document of b7s-batch-outputs.
type outputDocument struct {
	// Key is the document's own id: the same as ID.
	Key   string `bson:"_id"`
	ID    string `bson:"id"`
	Batch string `bson:"batch_id"`
	Data  []byte `bson:"data"`
}

func outputKey(output, stream string, part int32) string {
	return fmt.Sprintf("%s/%s/%d", output, stream, part)
}

// saveOutput is the result of an attempt. The parts of a large one are stored
// before the item names them; those of a report that does not count are removed
// with the batch.
func (s *Store) saveOutput(ctx context.Context, r *report, end *batch.Completion) (*resultDocument, error) {
	result := &resultDocument{ExitCode: int64(end.Result.ExitCode), Usage: newUsageDocument(&end.Result.Usage)}
	if len(end.Result.Stdout)+len(end.Result.Stderr) <= largeOutput {
		result.Stdout, result.Stderr = text(end.Result.Stdout), text(end.Result.Stderr)
		return result, nil
	}
	result.Output = fmt.Sprintf("%s/%d/%s", r.batch.ID, end.Index, r.token)
	var err error
	if result.StdoutParts, err = s.saveStream(ctx, r, result.Output, "stdout", end.Result.Stdout); err != nil {
		return nil, err
	}
	result.StderrParts, err = s.saveStream(ctx, r, result.Output, "stderr", end.Result.Stderr)
	return result, err
}

func (s *Store) saveStream(ctx context.Context, r *report, output, stream, data string) (parts int32, err error) {
	for ; data != ""; parts++ {
		n := min(len(data), outputPart)
		key := outputKey(output, stream, parts)
		_, err := s.outputs.InsertOne(ctx,
			&outputDocument{Key: key, ID: key, Batch: r.batch.ID, Data: []byte(data[:n])})
		if err != nil {
			return 0, failed(ctx, err, "store the %s of an item of batch %s", stream, r.batch.ID)
		}
		data = data[n:]
	}
	return parts, nil
}

// size is how many bytes of output a result has at most, 0 for nil.
func (r *resultDocument) size() int64 {
	if r == nil {
		return 0
	}
	return int64(len(r.Stdout)+len(r.Stderr)) + r.apart()
}

// apart is how many bytes of output have documents of their own, at most.
func (r *resultDocument) apart() int64 {
	return outputPart * (int64(r.StdoutParts) + int64(r.StderrParts))
}

// loadOutput puts a large output into the item's result.
func (s *Store) loadOutput(ctx context.Context, d *itemDocument) (err error) {
	if d.Result == nil || d.Result.Output == "" {
		return nil
	}
	if d.Result.Stdout, err = s.loadStream(ctx, d, "stdout", d.Result.StdoutParts); err != nil {
		return err
	}
	d.Result.Stderr, err = s.loadStream(ctx, d, "stderr", d.Result.StderrParts)
	return err
}

func (s *Store) loadStream(ctx context.Context, d *itemDocument, stream string, parts int32) (text, error) {
	var data strings.Builder
	for part := range parts {
		key := outputKey(d.Result.Output, stream, part)
		found, err := findOne[outputDocument](ctx, s.outputs, bson.D{field("_id", key)}, nil,
			"read the %s of item %d of batch %s", stream, d.Index, d.Batch)
		if err != nil {
			return "", err
		}
		if found == nil {
			return "", fmt.Errorf("part %d of %d of the %s of item %d of batch %s: %w", part, parts, stream, d.Index,
				d.Batch, batch.ErrNotFound)
		}
		data.Write(found.Data)
	}
	return text(data.String()), nil
}
