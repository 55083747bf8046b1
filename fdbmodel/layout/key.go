package layout

import (
	"bytes"
	"slices"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Key is a key of a cluster, split into the parts that the key table names.
type Key struct {
	Raw []byte
	// Kind is nil for a key that the table does not have. The fields below then
	// hold what precedes the part that no kind has.
	Kind     *KeyKind
	Cluster  string // empty for a key outside of every cluster
	Shard    int    // -1 for a key outside of the shards
	Subspace string
	ID       ID // of the future that the key names, if it names one

	body  int // where the elements after the subspace begin
	stamp tuple.Stamp
	parts [maxElements]keyPart
}

// maxElements is the maximum number of elements of a key after its subspace.
const maxElements = 8

// keyPart is the value of one element.
type keyPart struct {
	text   string
	number int64
	id     ID
}

// Text returns the part with that name, empty if the key has no such text.
func (k *Key) Text(name string) string { return k.part(name).text }

// Int returns the part with that name, 0 if the key has no such number.
func (k *Key) Int(name string) int64 { return k.part(name).number }

// Future returns the id of the future with that name, zero if the key has none.
func (k *Key) Future(name string) ID { return k.part(name).id }

func (k *Key) part(name string) (part keyPart) {
	if i := slices.IndexFunc(k.Kind.Elements, func(e Element) bool { return e.name == name }); i >= 0 {
		part = k.parts[i]
	}
	return part
}

// Entity returns the beginning of the key up to its first part, such as the id
// of a future. It is the whole key if that part can't be read.
func (k *Key) Entity() []byte {
	rest := tuple.NewReader(k.Raw[k.body:])
	if rest.Any(); rest.Err() != nil {
		return k.Raw
	}
	return k.Raw[:len(k.Raw)-len(rest.Rest())]
}

// Parse splits any key into its parts.
func (t *Table) Parse(key []byte) Key {
	k := Key{Raw: key, Shard: -1}
	rest := tuple.NewReader(key)
	rest.Expect(rootName)
	k.Cluster = rest.Text()
	behind := rest
	if shard := behind.Int(); behind.Err() == nil && shard >= 0 && shard < maxShards {
		k.Shard, rest = int(shard), behind
	}
	k.Subspace = rest.Text()
	k.body = len(key) - len(rest.Rest())
	k.match(t, rest, 0)
	return k
}

// match finds the kind of a key in a known subspace; rest begins with the
// element at the index from.
func (k *Key) match(t *Table, rest tuple.Reader, from int) {
	kinds := t.bySubspace[k.Subspace]
	if len(kinds) == 0 || kinds[0].Sharded != (k.Shard >= 0) || rest.Err() != nil {
		return
	}
	for _, kind := range kinds {
		if k.take(kind, rest, from) {
			k.Kind = kind
			return
		}
	}
}

// take reads the elements of a kind, and reports whether the key has them all
// and nothing else.
func (k *Key) take(kind *KeyKind, rest tuple.Reader, from int) bool {
	for i := from; i < len(kind.Elements); i++ {
		e, part := &kind.Elements[i], &k.parts[i]
		switch e.is {
		case elementName:
			left, found := bytes.CutPrefix(rest.Rest(), e.encoded)
			if !found || rest.Err() != nil {
				return false
			}
			rest = tuple.NewReader(left)
		case elementText:
			if !e.optional || rest.IsText() {
				part.text = rest.Text()
			}
		case elementChoice:
			if part.text = rest.Text(); !slices.Contains(e.among, part.text) {
				return false
			}
		case elementInt:
			part.number = rest.Int()
		case elementIndex:
			if part.number = rest.Int(); part.number < 0 {
				return false
			}
		case elementPriority:
			if part.number = MaxPriority - rest.Int(); part.number < 0 || part.number > MaxPriority {
				return false
			}
		case elementID:
			if part.id = ID(rest.UUID()); e.name == futureName {
				k.ID = part.id
			}
		case elementStamp:
			k.stamp = rest.Stamp()
		}
	}
	return rest.Done() == nil
}

// Holds reports whether a key of a known kind lies in the shard that the
// keyspace gives it.
func (k Keyspace) Holds(key *Key) bool {
	if key.Shard >= k.Shards {
		return false
	}
	for i := range key.Kind.Elements {
		switch e := &key.Kind.Elements[i]; {
		case !e.home:
		case e.is == elementID:
			return key.parts[i].id.Shard(k.Shards) == key.Shard
		default:
			return ShardOf(key.parts[i].text, k.Shards) == key.Shard
		}
	}
	return true
}
