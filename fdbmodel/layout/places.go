package layout

import (
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// ParseAssigned reads a key below a worker's assignments.
func ParseAssigned(item kv.KeyValue, prefix []byte) (ReadyEntry, error) {
	rest := tuple.NewReader(item.Key[len(prefix):])
	queue := rest.Text()
	if err := rest.Err(); err != nil {
		return ReadyEntry{}, err
	}
	e, _, err := ParseReady(item, item.Key[:len(item.Key)-len(rest.Rest())], queue)
	return e, err
}

// ReadyEntry is one key of the ready index.
type ReadyEntry struct {
	Id       ID
	Key      []byte
	Function string
	Class    Class
}

// ParseReady reads a key below Keyspace.ReadyQueue, the prefix, and returns as well
// where its class ends. A key that is not one is an error of package tuple.
func ParseReady(item kv.KeyValue, prefix []byte, queue string) (e ReadyEntry, classEnd int, err error) {
	rest := tuple.NewReader(item.Key[len(prefix):])
	e = ReadyEntry{Key: item.Key, Function: string(item.Value), Class: Class{Queue: queue, Group: rest.Text()}}
	e.Class.Cpu, e.Class.Ram, e.Class.Gpu = rest.Int(), rest.Int(), rest.Int()
	classEnd = len(item.Key) - len(rest.Rest())
	rest.Int()
	e.Id = ID(rest.UUID())
	return e, classEnd, rest.Done()
}
