package bank

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	clients = 32
	// patience is how long a test waits for something that must come, and impatience when it sets clocks for it.
	patience   = 2 * time.Minute
	impatience = 3 * time.Second
	// farthest is by how many seconds a clock is off at most.
	farthest = 3600
)

// member is a process of a crew.
type member struct {
	command *exec.Cmd
	input   io.WriteCloser
	clients int
	read    chan struct{} // closed when its last word was read

	mu           sync.Mutex
	ready, owner bool
	told         int
}

// follow reads what the process says.
func (m *member) follow(output io.Reader) {
	defer close(m.read)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		m.mu.Lock()
		switch lines.Text() {
		case wordReady:
			m.ready = true
		case wordOwner:
			m.owner = true
		case wordTold:
			m.told++
		}
		m.mu.Unlock()
	}
}

func (m *member) is() (ready, owner bool, told int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ready, m.owner, m.told
}

// ended reports whether the process has ended.
func (m *member) ended() bool {
	select {
	case <-m.read:
		return true
	default:
		return false
	}
}

// kill ends the process as kill -9 does.
func (m *member) kill() {
	_ = m.command.Process.Kill()
	<-m.read
	_ = m.command.Wait()
	_ = m.input.Close()
}

// server is a store in a process of its own.
type server struct {
	kill    func()
	restart func() error
	signal  func(os.Signal) error
}

// crew are the processes of a bank.
type crew struct {
	t                       *testing.T
	random                  *rand.Rand
	store, cluster, journal string
	server                  *server // nil for an embedded store
	members                 []*member
	started, rescues        int
	struck                  map[string]int // how often each fault came
	most                    int64          // by how many seconds a clock was ahead so far
}

// start starts a process with a clock that is off, in place of the one with that number.
func (c *crew) start(at, clients int) {
	binary, err := os.Executable()
	require.NoError(c.t, err)
	m := &member{command: exec.Command(binary), clients: clients, read: make(chan struct{})}
	m.command.Env = append(os.Environ(), fmt.Sprint(processVariable, "=", c.started), storeVariable+"="+c.store,
		clusterVariable+"="+c.cluster, journalVariable+"="+c.journal, fmt.Sprint(clientsVariable, "=", clients),
		fmt.Sprint(aheadVariable, "=", c.offset()))
	m.command.Stderr = os.Stderr
	m.input, err = m.command.StdinPipe()
	require.NoError(c.t, err)
	output, err := m.command.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, m.command.Start())
	go m.follow(output)
	c.started++
	c.members[at] = m
}

// startAll starts three processes that work and pay, and that of an embedded store first.
func (c *crew) startAll() {
	const working = 3
	c.t.Cleanup(c.killAll)
	if c.server == nil {
		c.members = make([]*member, 1, 1+working)
		c.start(0, 0)
		c.await("the store", func() bool { _, owner, _ := c.members[0].is(); return owner })
	}
	for n := range working {
		c.members = append(c.members, nil)
		c.start(len(c.members)-1, (clients+n)/working)
	}
	c.progress(1)
}

func (c *crew) killAll() {
	for _, m := range c.members {
		if m != nil {
			m.kill()
		}
	}
	c.members = nil
}

// offset draws by how many seconds a clock is off: mostly few.
func (c *crew) offset() int64 {
	most := int64(1)
	for most < farthest && c.random.IntN(4) > 0 {
		most *= 3
	}
	ahead := c.random.Int64N(2*most+1) - most
	c.most = max(c.most, ahead)
	return ahead
}

// setClock sets the clock of a process.
func (c *crew) setClock(m *member, ahead int64) {
	_, err := fmt.Fprintln(m.input, ahead)
	require.NoError(c.t, err)
}

// await looks until done. When that takes long, all clocks are set to the one that was ahead most: what a clock has
// delayed is due later by one that is behind it, and it may be the first call of an account.
func (c *crew) await(what string, done func() bool) {
	c.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	give, rescue := time.After(patience), time.After(impatience)
	for !done() {
		select {
		case <-tick.C:
			for _, m := range c.members {
				require.False(c.t, m.ended(), "a process has ended by itself")
			}
		case <-rescue:
			c.rescues++
			for _, m := range c.members {
				c.setClock(m, c.most)
			}
			rescue = time.After(impatience)
		case <-give:
			require.FailNow(c.t, "did not come: "+what)
		}
	}
}

// progress waits until the clients of each process were told so many things more.
func (c *crew) progress(n int) {
	c.t.Helper()
	before := make([]int, len(c.members))
	for i, m := range c.members {
		_, _, before[i] = m.is()
	}
	c.await("progress", func() bool {
		for i, m := range c.members {
			ready, _, told := m.is()
			if !ready || m.clients > 0 && told < before[i]+n {
				return false
			}
		}
		return true
	})
}
