package remote

import "time"

// reading is the reading of a connection, which the goroutine that has read a batch has while it runs that, until it
// or another one passes it on.
type reading struct {
	peer   *peer
	number uint64
}

// pass leaves the reading to another goroutine.
func (r reading) pass() {
	if !r.end() {
		return
	}
	select {
	case r.peer.turn <- struct{}{}:
	default:
		r.peer.running.Go(r.peer.read)
	}
}

// end reports whether the reading was not passed on before.
func (r reading) end() bool { return r.peer.batch.CompareAndSwap(r.number, r.number+1) }

// maxIdle bounds the goroutines of a connection that wait for their turn to
// read.
const maxIdle = 16

// read takes frames until the connection ends. The goroutine that has read a batch
// does it, and leaves the reading to another one where that may take long or more has come: an answer
// then needs no switch between goroutines.
func (p *peer) read() {
	for {
		t := p.readWork()
		if t == nil {
			close(p.readEnded)
			return
		}
		more := p.in.r.Buffered() > 0
		r := reading{p, p.batch.Add(1)}
		if more || !t.readsAtOnce {
			r.pass()
		}
		p.out.busy.Add(1)
		t.run(r)
		p.out.busy.Add(-1)
		if r.end() {
			continue
		}
		if p.idle.Add(1) > maxIdle {
			p.idle.Add(-1)
			return
		}
		select {
		case <-p.turn:
			p.idle.Add(-1)
		case <-p.readEnded:
			return
		}
	}
}

// longBatch is after how long, and twice that at most, a goroutine that runs a batch has the reading passed on: its
// read may wait for a disk that hangs, and what else the client sends is not to.
const longBatch = 250 * time.Millisecond

// passOn passes the reading on of connections whose batches take long.
func (s *server) passOn() {
	ticker := time.NewTicker(longBatch)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.ctx.Done():
			return
		}
		for _, r := range s.longReadings() {
			r.pass()
		}
	}
}

// longReadings returns those that it has seen before.
func (s *server) longReadings() (long []reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, client := range s.clients {
		now := client.last
		if now == nil {
			continue
		}
		number := now.peer.batch.Load()
		if number == now.batch && number%2 == 1 {
			long = append(long, reading{now.peer, number})
		}
		now.batch = number
	}
	return long
}
