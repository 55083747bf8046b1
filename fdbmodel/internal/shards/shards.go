// Package shards reads what each shard of a cluster has a range of.
package shards

import (
	"context"
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// MaxRefills is the maximum number of pages that a Scan reads after the first one of each
// shard.
const MaxRefills = 64

// Scan reads a range of each shard and deals out the keys, one of each
// shard in turn: a shard with many does not keep the others waiting. The first
// pages are read together.
type Scan struct {
	tx      kv.Reader
	page    int // keys in a page
	parts   []part
	at      int // the part that the last key came from
	refills int
	ends    map[int][]byte // by shard where one goes on that MaxRefills has cut off, nil for one that ended
}

// Cursor is where the scans of a janitor go on that MaxRefills has cut off: what stays as it is at
// the beginning of a range keeps nothing behind it from its turn. Its zero value begins with the
// first keys. Its methods may be called from many goroutines.
type Cursor struct {
	mu    sync.Mutex
	begin map[int][]byte
}

// Read is the function Read, from where a scan that was kept has ended.
func (c *Cursor) Read(tx kv.Reader, n int, of func(shard int) []byte, page int) *Scan {
	c.mu.Lock()
	defer c.mu.Unlock()
	return read(tx, n, of, page, c.begin)
}

// Keep has the next scans go on where this one was cut off. Call it once what the scan has led
// to is committed.
func (c *Cursor) Keep(s *Scan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for shard, end := range s.ends {
		if c.begin == nil {
			c.begin = map[int][]byte{}
		}
		c.begin[shard] = end
	}
}

// part is what is left of the range of a shard.
type part struct {
	shard   int
	skip    int // length of the prefix of all its keys
	items   []kv.KeyValue
	rest    kv.Range // behind items, unless a page was requested
	pending kv.Pending[kv.Page]
	asked   bool
}

// Read requests the first page of each of n shards. of returns the prefix of a shard's keys.
func Read(tx kv.Reader, n int, of func(shard int) []byte, page int) *Scan {
	return read(tx, n, of, page, nil)
}

func read(tx kv.Reader, n int, of func(shard int) []byte, page int, begin map[int][]byte) *Scan {
	s := &Scan{tx: tx, page: page, parts: make([]part, n), at: -1, ends: map[int][]byte{}}
	for shard := range s.parts {
		p, prefix := &s.parts[shard], of(shard)
		p.shard, p.skip, p.rest = shard, len(prefix), kv.Prefix(prefix)
		if from := begin[shard]; from != nil {
			p.rest.Begin = from
		}
		s.ask(p)
	}
	return s
}

func (s *Scan) ask(p *part) {
	p.pending, p.asked = s.tx.GetRange(p.rest, kv.RangeOptions{Limit: s.page}), true
}

// Next returns the next key and the length of its prefix, and a nil key at the
// end.
func (s *Scan) Next(ctx context.Context) (item kv.KeyValue, skip int, err error) {
	for len(s.parts) > 0 {
		s.at = (s.at + 1) % len(s.parts)
		p := &s.parts[s.at]
		if len(p.items) == 0 {
			if err := s.fill(ctx, p); err != nil {
				return kv.KeyValue{}, 0, err
			}
		}
		if len(p.items) > 0 {
			item, p.items = p.items[0], p.items[1:]
			return item, p.skip, nil
		}
		shard, rest := p.shard, p.rest
		s.Leave()
		if !rest.Empty() {
			s.ends[shard] = rest.Begin
		}
	}
	return kv.KeyValue{}, 0, nil
}

// Leave ends the scan of the shard that the last key came from.
func (s *Scan) Leave() {
	s.ends[s.parts[s.at].shard] = nil
	s.parts = slices.Delete(s.parts, s.at, s.at+1)
	s.at--
}

// IsCut reports whether MaxRefills has cut the scan off: a next one goes on.
func (s *Scan) IsCut() bool {
	for _, end := range s.ends {
		if end != nil {
			return true
		}
	}
	return false
}

// fill reads the next page of a shard, if there may be one.
func (s *Scan) fill(ctx context.Context, p *part) error {
	if !p.asked {
		if p.rest.Empty() || s.refills == MaxRefills {
			return nil
		}
		s.refills++
		s.ask(p)
	}
	page, err := p.pending.Wait(ctx)
	p.asked, p.items, p.rest.Begin = false, page.Items, p.rest.End
	if err == nil && page.More {
		p.rest.Begin = kv.After(page.Items[len(page.Items)-1].Key)
	}
	return err
}
