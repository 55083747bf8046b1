package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// healthTime is how long a healthy store may take to answer.
const healthTime = 5 * time.Second

// Worker is a worker as the store knows it.
type Worker struct {
	ID          layout.WorkerID  `json:"id"`
	Name        string           `json:"name,omitempty"`
	Address     string           `json:"address,omitempty"`
	Alive       bool             `json:"alive" doc:"False while the futures of a dead worker are being taken back"`
	Queues      []string         `json:"queues"`
	Functions   []string         `json:"functions" doc:"wasm:* stands for every module"`
	Capacity    layout.Resources `json:"capacity"`
	Free        layout.Resources `json:"free"`
	Running     int              `json:"running"`
	Awaiting    int              `json:"awaiting" doc:"How many of those wait for other futures, without a slot"`
	StoredBytes int64            `json:"stored_bytes" doc:"Results that it holds as objects"`
	RoomBytes   int64            `json:"object_room_bytes" doc:"Room for more of them; 0 without an object store"`
	NoRoom      bool             `json:"no_object_room" doc:"It takes no futures whose results are objects"`
	Draining    bool             `json:"draining" doc:"It claims no more, and stops once what it runs has ended"`
	Version     string           `json:"version,omitempty"`
	// Labels are those that futures may require.
	Labels    map[string]string `json:"labels,omitempty"`
	StartedAt time.Time         `json:"started_at"`
	BeatAt    time.Time         `json:"heartbeat_at" doc:"By the worker's own clock"`
}

// WorkerOf returns the view of a worker.
func WorkerOf(m *fdbmodel.Member) Worker {
	return Worker{
		ID: m.ID, Name: m.Name, Address: m.Address, Alive: m.Alive, Queues: append([]string{}, m.Queues...),
		Functions: append([]string{}, m.Functions...), Capacity: m.Capacity, Free: m.Heartbeat.Free,
		Running: m.Heartbeat.Running, Awaiting: m.Heartbeat.Awaiting, Version: m.Version, Labels: m.Labels,
		StoredBytes: m.Heartbeat.Stored, RoomBytes: m.Heartbeat.Room, NoRoom: m.Heartbeat.NoRoom,
		Draining:  m.Heartbeat.Draining,
		StartedAt: timeOf(m.StartedAt), BeatAt: timeOf(m.Heartbeat.At),
	}
}

// States of workers.
const (
	workerDead     = "dead"
	workerDraining = "draining"
	workerAlive    = "alive"
)

// State says whether a worker takes futures: dead, draining or alive.
func (w *Worker) State() string {
	switch {
	case !w.Alive:
		return workerDead
	case w.Draining:
		return workerDraining
	}
	return workerAlive
}

// Called is the worker's name, or its id if it has none.
func (w *Worker) Called() string { return cmp.Or(w.Name, string(w.ID)) }

func (s *server) registerCluster() {
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, "/api/v1/workers", "list-workers",
		"List the workers", ""), s.workers)
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, "/api/v1/cluster", "cluster", "Describe the cluster",
		"Its settings, and how many futures there are by queue and state."), s.cluster)
}

// registerHealth adds the health route of a single cluster.
func registerHealth(s *stack.Stack, client *futures.Client) {
	stack.Register(s, stack.Public, operation(http.MethodGet, "/api/v1/health", "health",
		"Check that the store answers", ""),
		func(ctx context.Context, _ *struct{}) (*body[healthOutputBody], error) {
			return answerWith(healthOutputBody{"ok", s.Version()}, CheckHealth(ctx, client))
		})
}

type workersOutputBody struct {
	Workers []Worker `json:"workers"`
}

// newMembers returns the workers of a cluster, for all who ask.
func newMembers(client *futures.Client) *shared[[]Worker] {
	return &shared[[]Worker]{from: func(ctx context.Context) ([]Worker, error) {
		members, err := client.Cluster().Workers(ctx)
		return viewsOf(members, WorkerOf), err
	}}
}

func (s *server) workers(ctx context.Context, _ *struct{}) (*body[workersOutputBody], error) {
	found, err := s.members.read(ctx)
	return answerWith(workersOutputBody{found}, err)
}

// Count is how many futures of a queue are in a state.
type Count struct {
	Queue   string `json:"queue"`
	Owner   string `json:"owner,omitempty"`
	State   string `json:"state"`
	Futures int64  `json:"futures"`
}

// Cluster has a cluster's settings and the number of its futures.
type Cluster struct {
	Name        string `json:"name"`
	Shards      int    `json:"shards"`
	HeartbeatMS int64  `json:"heartbeat_ms" doc:"How often a worker changes its heartbeat"`
	DeadAfterMS int64  `json:"dead_after_ms" doc:"How long a heartbeat may go unchanged before death is declared"`
	RetentionMS int64  `json:"retention_ms" doc:"How long finished futures are kept"`
	// InfeasibleAfterMS is left out if it is for ever.
	InfeasibleAfterMS int64 `json:"infeasible_after_ms,omitempty" doc:"How long a future waits that no worker can run"`
	// Policy leaves out what is not limited.
	Policy Policy  `json:"policy" doc:"What futures may ask for"`
	Counts []Count `json:"counts" doc:"Of the 100 largest queues and owners; the rest is in the queue (other)"`
}

// ClusterOf returns the view of a cluster with a config and counters.
func ClusterOf(name string, config layout.Config, counts layout.Counts) Cluster {
	return Cluster{
		Name: name, Shards: config.Shards, HeartbeatMS: config.Heartbeat.Milliseconds(),
		DeadAfterMS: config.DeadAfter.Milliseconds(), RetentionMS: config.Retention.Milliseconds(),
		InfeasibleAfterMS: config.InfeasibleAfter.Milliseconds(),
		Policy:            policyOf(&config.Policy), Counts: countsOf(counts).all,
	}
}

// Policy has what a cluster allows futures.
type Policy struct {
	DefaultTimeoutMS int64 `json:"default_timeout_ms,omitempty" doc:"The timeout of futures without one"`
	MaxTimeoutMS     int64 `json:"max_timeout_ms,omitempty"`
	DefaultMemory    int64 `json:"default_memory_bytes,omitempty" doc:"The memory limit of modules that require none"`
	MaxMemory        int64 `json:"max_memory_bytes,omitempty"`
	MaxPriority      int   `json:"max_priority,omitempty"`
	MaxOutput        int64 `json:"max_output_bytes,omitempty" doc:"The largest result"`
}

func policyOf(p *layout.Policy) Policy {
	return Policy{
		DefaultTimeoutMS: p.DefaultTimeout.Milliseconds(), MaxTimeoutMS: p.MaxTimeout.Milliseconds(),
		DefaultMemory: p.DefaultMemory, MaxMemory: p.MaxMemory, MaxPriority: p.MaxPriority, MaxOutput: p.MaxOutput,
	}
}

func (s *server) cluster(ctx context.Context, _ *struct{}) (*body[Cluster], error) {
	c := s.client.Cluster()
	now, err := s.counts.read(ctx)
	view := ClusterOf(c.Name(), c.Config(), nil)
	view.Counts = now.all
	return answerWith(view, err)
}

type healthOutputBody struct {
	Status  string `json:"status" enum:"ok"`
	Version string `json:"version"`
}

// CheckHealth returns a problem if the store does not answer in time.
func CheckHealth(ctx context.Context, client *futures.Client) error {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	if _, _, err := maintenance.Of(client.Cluster()).Present(ctx); err != nil {
		return stack.NewProblem(http.StatusServiceUnavailable, "store_unavailable", err, "the store does not answer: %s", err)
	}
	return nil
}
