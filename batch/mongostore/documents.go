package mongostore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/futura-run/futura/batch"
)

// text is a string of any bytes. One that is not valid UTF-8, as a string must
// be, is stored as binary data.
type text string

// MarshalBSONValue implements bson.ValueMarshaler.
func (t text) MarshalBSONValue() (byte, []byte, error) {
	var value any = string(t)
	if !utf8.ValidString(string(t)) {
		value = bson.Binary{Data: []byte(t)}
	}
	kind, data, err := bson.MarshalValue(value)
	return byte(kind), data, err
}

// UnmarshalBSONValue implements bson.ValueUnmarshaler.
func (t *text) UnmarshalBSONValue(kind byte, data []byte) error {
	value := bson.RawValue{Type: bson.Type(kind), Value: data}
	switch value.Type {
	case bson.TypeNull:
		*t = ""
		return nil
	case bson.TypeString:
		s, ok := value.StringValueOK()
		if !ok {
			return fmt.Errorf("a string is cut off")
		}
		*t = text(s)
		return nil
	case bson.TypeBinary:
		_, b, ok := value.BinaryOK()
		if !ok {
			return fmt.Errorf("binary data is cut off")
		}
		*t = text(b)
		return nil
	}
	return fmt.Errorf("a text is a %v: want a string or binary data", value.Type)
}

// Why a batch is hidden.
const (
	creating = "creating"
	deleting = "deleting"
)

// batchDocument is a document of b7s-batches.
type batchDocument struct {
	// Key is the document's own id: the same as ID.
	Key         string         `bson:"_id"`
	ID          string         `bson:"id"`
	Function    string         `bson:"cid"`
	Method      string         `bson:"method"`
	Config      configDocument `bson:"config"`
	Status      int32          `bson:"status"`
	CreatedAt   time.Time      `bson:"created_at"`
	FinishedAt  time.Time      `bson:"finished_at,omitempty"`
	Reason      text           `bson:"reason,omitempty"`
	MaxAttempts int32          `bson:"max_attempts"`
	Items       int32          `bson:"items"`
	// Round counts the retries, and Version what a Settle that began before may
	// not overwrite.
	Round   int32 `bson:"round"`
	Version int32 `bson:"version"`
	// Hidden says why the batch is invisible; Creator identifies the call that
	// creates it, and Digest its content.
	Hidden  string `bson:"hidden,omitempty"`
	Creator string `bson:"creator,omitempty"`
	Digest  string `bson:"digest,omitempty"`
}

type configDocument struct {
	Nodes       int32              `bson:"nodecount"`
	Stdin       text               `bson:"stdin,omitempty"`
	Environment []variableDocument `bson:"environment,omitempty"`
	Timeout     int64              `bson:"timeout"`
	Concurrency int32              `bson:"concurrency"`
	RatePerHost float64            `bson:"rateperhost"`
	Queue       string             `bson:"queue,omitempty"`
	RunTime     int64              `bson:"runtimems,omitempty"`
	Memory      int64              `bson:"memory,omitempty"`
	Entry       string             `bson:"entry,omitempty"`
	Labels      []variableDocument `bson:"labels,omitempty"`
}

type variableDocument struct {
	Name  text `bson:"name"`
	Value text `bson:"value"`
}

func newBatchDocument(b *batch.Batch, items int) *batchDocument {
	c := &b.Template.Config
	d := &batchDocument{
		Key: b.ID, ID: b.ID, Function: b.Template.FunctionID, Method: b.Template.Method, Status: int32(batch.Created),
		CreatedAt: milliseconds(b.CreatedAt), MaxAttempts: int32(max(b.MaxAttempts, 1)), Items: int32(items),
		Config: configDocument{
			Nodes: int32(c.Nodes), Stdin: text(c.Stdin), Timeout: int64(c.Timeout), Concurrency: int32(c.Concurrency),
			RatePerHost: c.RatePerHost, Queue: c.Queue, RunTime: c.RunTime, Memory: c.Memory, Entry: c.Entry,
		},
	}
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		d.Config.Labels = append(d.Config.Labels, variableDocument{text(name), text(c.Labels[name])})
	}
	for _, v := range c.Environment {
		d.Config.Environment = append(d.Config.Environment, variableDocument{text(v.Name), text(v.Value)})
	}
	return d
}

func (d *batchDocument) batch() batch.Batch {
	b := batch.Batch{
		ID: d.ID, MaxAttempts: int(d.MaxAttempts), Items: int(d.Items), Status: batch.Status(d.Status),
		Reason: string(d.Reason), CreatedAt: utc(d.CreatedAt), FinishedAt: utc(d.FinishedAt),
		Template: batch.Template{
			FunctionID: d.Function, Method: d.Method,
			Config: batch.Config{
				Nodes: int(d.Config.Nodes), Stdin: string(d.Config.Stdin), Timeout: int(d.Config.Timeout),
				Concurrency: int(d.Config.Concurrency), RatePerHost: d.Config.RatePerHost, Queue: d.Config.Queue,
				RunTime: d.Config.RunTime, Memory: d.Config.Memory, Entry: d.Config.Entry,
			},
		},
	}
	for _, v := range d.Config.Labels {
		if b.Template.Config.Labels == nil {
			b.Template.Config.Labels = map[string]string{}
		}
		b.Template.Config.Labels[string(v.Name)] = string(v.Value)
	}
	for _, v := range d.Config.Environment {
		b.Template.Config.Environment = append(b.Template.Config.Environment,
			batch.EnvVar{Name: string(v.Name), Value: string(v.Value)})
	}
	return b
}

func (d *batchDocument) cancelled() bool { return d.Status == int32(batch.PermanentlyFailed) }

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// chunkDocument is a document of b7s-batch-chunks. It is Created until its
// items are its.
type chunkDocument struct {
	// Key is the document's own id: the same as ID.
	Key       string    `bson:"_id"`
	ID        string    `bson:"id"`
	Batch     string    `bson:"batch_id"`
	Worker    string    `bson:"worker"`
	Status    int32     `bson:"status"`
	Items     int32     `bson:"items"`
	CreatedAt time.Time `bson:"created_at"`
	// Version counts how often it was given items.
	Version    int32     `bson:"version"`
	Peer       string    `bson:"peer,omitempty"`
	FinishedAt time.Time `bson:"finished_at,omitempty"`
}

// itemKey is the key of an item's document. Within a batch, keys are in the order
// of indexes.
func itemKey(batch string, index int32) string { return fmt.Sprintf("%s/%07d", batch, index) }

func itemKeys(batch string, indexes []int32) bson.D {
	keys := make([]string, len(indexes))
	for i, index := range indexes {
		keys[i] = itemKey(batch, index)
	}
	return oneOf(keys...)
}

// behindItems sorts after the keys of all items of a batch.
func behindItems(batch string) string { return batch + "0" }

// chunkKey is a chunk's id in the collection.
func chunkKey(batch, chunk string) string { return batch + ":" + chunk }

// chunkOf is the chunk's id that a key has.
func chunkOf(key string) string { return key[strings.LastIndexByte(key, ':')+1:] }

func (d *chunkDocument) chunk() batch.Chunk {
	return batch.Chunk{
		ID: chunkOf(d.ID), Batch: d.Batch, Worker: d.Worker, Status: batch.Status(d.Status), Items: int(d.Items),
		CreatedAt: utc(d.CreatedAt), Peer: d.Peer, FinishedAt: utc(d.FinishedAt),
	}
}

// itemDocument is a document of b7s-batch-work-items.
type itemDocument struct {
	Key       string          `bson:"_id"`
	ID        string          `bson:"id"`
	Batch     string          `bson:"batch_id"`
	Index     int32           `bson:"index"`
	Arguments []text          `bson:"arguments"`
	Status    int32           `bson:"status"`
	Chunk     string          `bson:"chunk_id,omitempty"`
	Worker    string          `bson:"worker,omitempty"`
	Attempts  int32           `bson:"attempts"`
	FailedOn  []string        `bson:"failed_on,omitempty"`
	DueAt     time.Time       `bson:"due_at,omitempty"`
	Reason    text            `bson:"reason,omitempty"`
	Round     int32           `bson:"round"`
	UpdatedAt time.Time       `bson:"updated_at"`
	EndedBy   string          `bson:"ended_by,omitempty"`
	Result    *resultDocument `bson:"result,omitempty"`
}

type resultDocument struct {
	Stdout   text  `bson:"stdout"`
	Stderr   text  `bson:"stderr,omitempty"`
	ExitCode int64 `bson:"exit_code"`
	// Output names the documents that have the output if it is large.
	Output      string `bson:"output,omitempty"`
	StdoutParts int32  `bson:"stdout_parts,omitempty"`
	StderrParts int32  `bson:"stderr_parts,omitempty"`

	Usage *usageDocument `bson:"usage,omitempty"`
}

// usageDocument has times in nanoseconds.
type usageDocument struct {
	WallClock   int64 `bson:"wall_clock_time"`
	CPUUser     int64 `bson:"cpu_user_time"`
	CPUSys      int64 `bson:"cpu_sys_time"`
	MemoryMaxKB int64 `bson:"memory_max_kb"`
}

func newUsageDocument(u *batch.Usage) *usageDocument {
	if *u == (batch.Usage{}) {
		return nil
	}
	return &usageDocument{int64(u.WallClock), int64(u.CPUUser), int64(u.CPUSys), u.MemoryMaxKB}
}

func (d *usageDocument) usage() batch.Usage {
	if d == nil {
		return batch.Usage{}
	}
	return batch.Usage{
		WallClock: time.Duration(d.WallClock), CPUUser: time.Duration(d.CPUUser), CPUSys: time.Duration(d.CPUSys),
		MemoryMaxKB: d.MemoryMaxKB,
	}
}

// itemDocuments are the documents of a batch's items. Those that run the same
// have the number of the repeat after their id.
func itemDocuments(b *batch.Batch, arguments [][]string, now time.Time) func(yield func(*itemDocument) bool) {
	return func(yield func(*itemDocument) bool) {
		seen := make(map[string]int, len(arguments))
		for i, list := range arguments {
			id := batch.ItemID(&b.Template, list)
			seen[id]++
			if n := seen[id]; n > 1 {
				id = fmt.Sprintf("%s#%d", id, n)
			}
			d := &itemDocument{
				Key: itemKey(b.ID, int32(i)), ID: b.ID + "/" + id, Batch: b.ID, Index: int32(i),
				Arguments: make([]text, len(list)), UpdatedAt: now,
			}
			for n, argument := range list {
				d.Arguments[n] = text(argument)
			}
			if !yield(d) {
				return
			}
		}
	}
}

func (d *itemDocument) item() batch.Item {
	id, _, _ := strings.Cut(strings.TrimPrefix(d.ID, d.Batch+"/"), "#")
	item := batch.Item{
		Index: int(d.Index), ID: id, Arguments: make([]string, len(d.Arguments)), Status: batch.Status(d.Status),
		Worker: d.Worker, Attempts: int(d.Attempts), FailedOn: d.FailedOn, DueAt: utc(d.DueAt),
		Reason: string(d.Reason), UpdatedAt: utc(d.UpdatedAt),
	}
	if d.Chunk != "" {
		item.Chunk = chunkOf(d.Chunk)
	}
	for i, argument := range d.Arguments {
		item.Arguments[i] = string(argument)
	}
	if d.Result != nil {
		item.Result = &batch.Result{
			Stdout: string(d.Result.Stdout), Stderr: string(d.Result.Stderr), ExitCode: int(d.Result.ExitCode),
			Usage: d.Result.Usage.usage(),
		}
	}
	return item
}
