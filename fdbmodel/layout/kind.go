package layout

import (
	"strings"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

// elementType is the type of an element of a key.
type elementType uint8

const (
	elementName     elementType = iota + 1 // a fixed text
	elementText                            // text
	elementChoice                          // one of some texts
	elementInt                             // an integer
	elementIndex                           // an integer from 0
	elementPriority                        // 255 less a priority
	elementID                              // the id of a future
	elementStamp                           // a versionstamp
)

// Element is one element of a key after its subspace.
type Element struct {
	name string
	is   elementType
	// home marks the element that determines the shard of a key. A key without
	// one may lie in any shard.
	home     bool
	optional bool     // a text that some keys lack, before an element of another type
	encoded  []byte   // of a fixed text
	among    []string // the texts of a choice
}

// Home returns the element as the one that determines the shard of its key.
func (e Element) Home() Element {
	e.home = true
	return e
}

func optional(e Element) Element {
	e.optional = true
	return e
}

// Fixed is an element that is the same text in all keys of a kind.
func Fixed(text string) Element {
	return Element{name: text, is: elementName, encoded: tuple.AppendString(nil, text)}
}

// Text is an element that is any text.
func Text(name string) Element { return Element{name: name, is: elementText} }

// Choice is an element that is one of some texts.
func Choice(name string, among ...string) Element {
	return Element{name: name, is: elementChoice, among: among}
}

// Number is an element that is an integer.
func Number(name string) Element { return Element{name: name, is: elementInt} }

// Index is an element that is an integer from 0.
func Index(name string) Element { return Element{name: name, is: elementIndex} }

// FutureID is an element that is the id of a future: if its name is id, of the one that the
// key belongs to.
func FutureID(name string) Element { return Element{name: name, is: elementID} }

// Versionstamp is an element that the store fills in.
func Versionstamp() Element { return Element{name: "stamp", is: elementStamp} }

// Priority is an element that is 255 less a priority.
func Priority() Element { return Element{name: "priority", is: elementPriority} }

// futureName is the name of the element that is the future which a key belongs to.
const futureName = "id"

func futureID() Element { return FutureID(futureName) }

// valueFormat is how a value is laid out.
type valueFormat uint8

const (
	FormatRecord  valueFormat = iota // version and msgpack map
	FormatStamped                    // version, versionstamp and msgpack map
	FormatNotices                    // version, number of notices and as many msgpack maps
	FormatMark                       // version alone
	FormatText                       // text
	FormatCounter                    // eight bytes, little endian
	FormatData                       // bytes as the caller gave them
	FormatPiece                      // up to ChunkSize of such bytes
	FormatEmpty                      // nothing
)

var formatNames = [...]string{"record", "stamped record", "notices", "mark", "text", "counter", "data", "data",
	"empty"}

// Versioned reports whether values of the format begin with a version.
func (f valueFormat) Versioned() bool { return f <= FormatMark }

// String returns the format's name.
func (f valueFormat) String() string { return formatNames[f] }

// carriage says whether and how a kind of key is copied to another store.
type carriage uint8

const (
	carried   carriage = iota // copied unchanged
	Restamped                 // copied under a versionstamp of the new store
	LeftOut                   // not copied: it belongs to processes, which create it again
)

// KeyKind is one kind of key: a row of the key table.
type KeyKind struct {
	Name     string
	Subspace string
	Sharded  bool // after the number of a shard
	Elements []Element
	Format   valueFormat
	// Record returns the record that a msgpack value decodes into; Called names
	// a value that is not msgpack.
	Record func() Record
	Called string
	Moves  carriage
	// Holds says what it holds, and Writer who writes it, for people.
	Holds, Writer string
}

// RecordOf returns an empty record. RecordOf[Spec] is the Record of a kind of keys.
func RecordOf[T any]() Record { return new(T) }

// Shape returns the key of a kind as the package documentation shows it.
func (k *KeyKind) Shape() string {
	var parts []string
	if k.Sharded {
		parts = append(parts, "s")
	}
	parts = append(parts, `"`+k.Subspace+`"`)
	for _, e := range k.Elements {
		switch {
		case e.optional:
			parts = append(parts, "["+strings.ToUpper(e.name)+"]")
		case e.is == elementName:
			parts = append(parts, `"`+e.name+`"`)
		case e.is == elementPriority:
			parts = append(parts, "255-PRIORITY")
		default:
			parts = append(parts, strings.ToUpper(e.name))
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
