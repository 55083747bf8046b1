package batch

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Status is the state of a batch, a chunk or a work item, as b7s counts them.
type Status int

// The states. A batch that is over is Done, whatever became of its items, or
// PermanentlyFailed if it was cancelled. A chunk is Done when none of its items
// is in progress, and Failed if its worker was lost or left before that.
const (
	Created           Status = 0
	InProgress        Status = 1
	Done              Status = 100
	Failed            Status = -1
	PermanentlyFailed Status = -2
)

// Statuses are all states.
func Statuses() []Status { return []Status{Created, InProgress, Done, Failed, PermanentlyFailed} }

// String returns the state's name as b7s has it.
func (s Status) String() string {
	switch s {
	case Created:
		return "created"
	case InProgress:
		return "in progress"
	case Done:
		return "done"
	case Failed:
		return "failed"
	case PermanentlyFailed:
		return "permanently failed"
	default:
		return fmt.Sprintf("status(%d)", int(s))
	}
}

// Over reports whether nothing follows this state.
func (s Status) Over() bool { return s == Done || s == PermanentlyFailed }

// Mistakes in what was asked, and what became of it. Nothing was changed unless
// it says so.
var (
	// ErrNotFound is returned when there is no such batch or chunk.
	ErrNotFound = errors.New("not found")
	// ErrExists is returned by Store.Create for an id that is in use.
	ErrExists = errors.New("a batch with this id exists")
	// ErrBusy is returned while another call creates the same batch.
	ErrBusy = errors.New("another request is creating the same batch: try again")
	// ErrBadBatch is returned for an invalid batch.
	ErrBadBatch = errors.New("bad batch")
	// ErrState is returned when the state of a batch does not allow the operation.
	ErrState = errors.New("not possible in this state")
	// ErrUnavailable is returned when the store does not answer. Whether a change
	// was made is not known: try again.
	ErrUnavailable = errors.New("the store does not answer: try again")
)

// Limits of a batch.
const (
	// MaxItems is the maximum number of work items in one batch.
	MaxItems = 1_000_000
	// MaxArguments is the maximum total size of one item's arguments, in bytes.
	MaxArguments = 16 << 10
	// MaxItem is the maximum total size of one item's arguments and of the
	// environment's names and values, in bytes: as much as a future takes.
	MaxItem = 32_000
	// MaxTemplate is the maximum size of a batch's template as JSON, in bytes: its
	// standard input is the most of it. All that is kept of a batch has to fit into one key.
	MaxTemplate = 90_000
	// DefaultMaxAttempts is the operator's limit unless it is set.
	DefaultMaxAttempts = 10
	// NoExitCode is the exit code of an attempt that ended without one: it ran
	// too long, was lost, or could not be loaded. Stderr says why.
	NoExitCode = -1
)

// Template is what all items of a batch have in common.
type Template struct {
	// FunctionID is a module's content id, or an alias that stands for one.
	FunctionID string `json:"function_id"`
	// Method is the part of the function that is run, such as "echo.wasm".
	Method string `json:"method"`
	// Config is how it is run.
	Config Config `json:"config"`
}

// Invocation is how b7s writes what an item runs, without its arguments.
func (t *Template) Invocation() string { return t.FunctionID + "/" + t.Method }

// Encode returns the template as JSON, as stores keep it. It returns ErrBadBatch if that is larger
// than MaxTemplate. Characters of HTML stand for themselves.
func (t *Template) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(t); err != nil {
		return nil, fmt.Errorf("%w: template: %w", ErrBadBatch, err)
	}
	encoded := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if len(encoded) > MaxTemplate {
		return nil, fmt.Errorf("%w: template has %d bytes as JSON, of which stdin has %d: at most %d; put the input where a "+
			"function can fetch it, and pass where", ErrBadBatch, len(encoded), len(t.Config.Stdin), MaxTemplate)
	}
	return encoded, nil
}

// Config is how the items of a batch are run.
type Config struct {
	// Nodes is how many workers take part: the first n that answer, all that
	// answer if it is -1, one if it is 0.
	Nodes int `json:"number_of_nodes,omitempty"`
	// Stdin is the standard input of each item.
	Stdin string `json:"stdin,omitempty"`
	// Environment is the environment of each item.
	Environment []EnvVar `json:"env_vars,omitempty"`
	// Timeout bounds one attempt of one item, in seconds. 0 is no bound.
	Timeout int `json:"timeout,omitempty"`
	// Concurrency is how many items of a chunk its worker runs at a time.
	// Defaults to 1: one after the other.
	Concurrency int `json:"concurrency,omitempty"`
	// RatePerHost bounds how many items per second all workers of the cluster together
	// start for one target host: that of the first argument that is a URL. 0 is no
	// bound; the slowest rate is one a day.
	RatePerHost float64 `json:"rate_per_host,omitempty"`
	// Queue is the queue of the cluster whose workers run the items. Defaults to its
	// default queue.
	Queue string `json:"queue,omitempty"`
	// RunTime bounds one attempt of one item as Timeout does, in milliseconds.
	RunTime int64 `json:"run_time_ms,omitempty"`
	// Memory is what a worker must have free for an item, and the most that a module
	// may have, in bytes. 0 is the worker's own limit.
	Memory int64 `json:"memory_bytes,omitempty"`
	// Entry is the export of the module that is called. Defaults to the one that the
	// method names, or the start.
	Entry string `json:"entry,omitempty"`
	// Labels are those that a worker must have. Default to none.
	Labels map[string]string `json:"labels,omitempty"`
}

// Limit is the shorter one of Timeout and RunTime, 0 if there is none.
func (c *Config) Limit() time.Duration {
	limit, run := time.Duration(c.Timeout)*time.Second, time.Duration(c.RunTime)*time.Millisecond
	if limit == 0 || run != 0 && run < limit {
		return run
	}
	return limit
}

// EnvVar is a variable of the environment.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Batch is a batch without its items.
type Batch struct {
	// ID is a version 4 UUID.
	ID       string   `json:"id"`
	Template Template `json:"template"`
	// MaxAttempts is how often an item is tried: the lower of the user's and the
	// operator's limit, at least 1.
	MaxAttempts int    `json:"max_attempts"`
	Items       int    `json:"items"`
	Status      Status `json:"status"`
	// Reason says why the batch waits, or why it was cancelled.
	Reason     string    `json:"reason,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// Attempts returns how often an item is tried: the lower of the user's limit
// and the operator's, where 0 is none, and DefaultMaxAttempts if there is
// neither.
func Attempts(user, operator uint64) int {
	operator = cmp.Or(operator, DefaultMaxAttempts)
	if user == 0 || user > operator {
		user = operator
	}
	return int(min(user, 1<<31-1))
}

// ItemID is the id of a work item: the MD5 of "FUNCTION/METHOD ARG1 ARG2 …" in
// hex. Without arguments the space stays. Lists that join to the same text,
// such as ["a b"] and ["a", "b"], have the same id.
func ItemID(t *Template, arguments []string) string {
	sum := md5.Sum([]byte(t.Invocation() + " " + strings.Join(arguments, " ")))
	return hex.EncodeToString(sum[:])
}

// Digest is a hash of what makes a batch what it is: its template, attempts and
// arguments.
func Digest(b *Batch, arguments [][]string) []byte {
	h := sha256.New()
	e := json.NewEncoder(h)
	// Neither can fail: all is texts and numbers, and a hash takes anything.
	_ = e.Encode(&b.Template)
	_ = e.Encode(b.MaxAttempts)
	for _, list := range arguments {
		var length [binary.MaxVarintLen64]byte
		h.Write(binary.AppendUvarint(length[:0], uint64(len(list))))
		for _, argument := range list {
			h.Write(binary.AppendUvarint(length[:0], uint64(len(argument))))
			_, _ = io.WriteString(h, argument)
		}
	}
	return h.Sum(nil)
}

// Item is a work item.
type Item struct {
	// Index is the item's place in the batch, from 0: its name there.
	Index int `json:"index"`
	// ID is the item's ItemID.
	ID        string   `json:"id"`
	Arguments []string `json:"arguments"`
	Status    Status   `json:"status"`
	// Chunk is the last one that the item was part of, and Worker its worker.
	// Both are empty before the first.
	Chunk  string `json:"chunk,omitempty"`
	Worker string `json:"worker,omitempty"`
	// Attempts counts those that failed.
	Attempts int `json:"attempts"`
	// FailedOn are the workers of the attempts that failed, at most the last few, and those
	// that could not run the item and gave it back.
	FailedOn []string `json:"failed_on,omitempty"`
	// DueAt is when a failed item may be tried again.
	DueAt time.Time `json:"due_at,omitzero"`
	// Result is that of the last attempt that ended, nil before.
	Result *Result `json:"result,omitempty"`
	// LeftOut is how many bytes the result has at most, where a page of items has
	// no room for it, and how many an outline has left out of it.
	LeftOut int64 `json:"left_out,omitempty"`
	// Reason says why the item failed for good.
	Reason    string    `json:"reason,omitempty"`
	UpdatedAt time.Time `json:"updated_at"`
}

// PageBytes is the most bytes of results that a page of items has.
const PageBytes = 8 << 20

// Result is what an attempt left behind.
type Result struct {
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr,omitempty"`
	ExitCode int    `json:"exit_code"`
	Usage    Usage  `json:"usage,omitzero"`
}

// Usage is what an attempt took, as b7s counts it and as far as its worker knows it:
// 0 for what it does not. In JSON times are nanoseconds.
type Usage struct {
	WallClock time.Duration `json:"wall_clock_time,omitempty"`
	CPUUser   time.Duration `json:"cpu_user_time,omitempty"`
	CPUSys    time.Duration `json:"cpu_sys_time,omitempty"`
	// MemoryMaxKB is the most memory that it had at a time, in units of 1,024 bytes.
	MemoryMaxKB int64 `json:"memory_max_kb,omitempty"`
}

// Size is how many bytes of output the result has, 0 for nil.
func (r *Result) Size() int64 {
	if r == nil {
		return 0
	}
	return int64(len(r.Stdout) + len(r.Stderr))
}

// Begin returns a result with at most most bytes of each stream, and how many bytes that leaves out. It ends no text in
// the middle of a character. Of no result, and for 0 bytes, it returns nil. The result itself does not change.
func (r *Result) Begin(most int) (begun *Result, leftOut int64) {
	if r == nil || most <= 0 {
		return nil, 0
	}
	short := *r
	short.Stdout, short.Stderr = beginning(r.Stdout, most), beginning(r.Stderr, most)
	return &short, r.Size() - short.Size()
}

func beginning(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for end := most; end > most-utf8.UTFMax && end >= 0; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:most]
}

// Chunk is the items that one worker was given at one time.
type Chunk struct {
	// ID is a version 4 UUID.
	ID     string `json:"id"`
	Batch  string `json:"batch"`
	Worker string `json:"worker"`
	Status Status `json:"status"`
	// Items is how many it was given, those that were given again counted once, without
	// those of Moved.
	Items     int       `json:"items"`
	CreatedAt time.Time `json:"created_at"`
	// Peer is the id by which others know the worker, empty if that is Worker.
	Peer string `json:"peer,omitempty"`
	// FinishedAt is when Settle found the chunk over, or Release made it Failed; zero
	// while it has items in progress.
	FinishedAt time.Time `json:"finished_at,omitzero"`
	// Lost is how many of its items went back because its worker was lost, and Moved how many
	// went to other chunks because its worker had not begun them, as far as the store counts
	// them.
	Lost  int `json:"lost,omitempty"`
	Moved int `json:"moved,omitempty"`
}

// PeerID is what b7s calls the chunk's peer: Peer, or else the worker's own id.
func (c Chunk) PeerID() string { return cmp.Or(c.Peer, c.Worker) }

// Progress is how many items of a batch are in each state.
type Progress map[Status]int

// Over reports whether every one of n items is done or has failed for good.
func (p Progress) Over(n int) bool { return p[Done]+p[PermanentlyFailed] == n }

// MarshalJSON writes the states by their names.
func (p Progress) MarshalJSON() ([]byte, error) {
	named := map[string]int{}
	for _, s := range Statuses() {
		named[strings.ReplaceAll(s.String(), " ", "_")] = p[s]
	}
	return json.Marshal(named)
}
