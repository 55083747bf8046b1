package layout

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

// KeyPart is one named part of a key.
type KeyPart struct {
	Name  string
	Value any // string, int64 or ID
}

// KeyParts are the named parts of a key, in key order. In JSON they are one
// object.
type KeyParts []KeyPart

// MarshalJSON implements json.Marshaler.
func (p KeyParts) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, part := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(part.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(part.Value)
		if err != nil {
			return nil, err
		}
		b.Write(append(append(name, ':'), value...))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// KeyDescription is a key in readable form.
type KeyDescription struct {
	// Kind names the kind of key, as in docs/reference/keyspace.md. It is empty
	// for a key that does not belong to a cluster; Problem then says why.
	Kind     string `json:"kind"`
	Cluster  string `json:"cluster,omitempty"`
	Shard    *int   `json:"shard,omitempty"`
	Subspace string `json:"subspace,omitempty"`
	// Parts are the elements after the subspace, without the fixed names.
	Parts KeyParts `json:"parts,omitempty"`
	// Text is the key as a tuple, Escaped as fdbcli takes and prints it.
	Text    string `json:"key"`
	Escaped string `json:"escaped"`
	Problem string `json:"problem,omitempty"`
}

// Problems of keys.
const (
	ProblemForeign = "not a key of a Futura cluster"
	ProblemUnknown = "a kind of key that this version does not know"
)

// Describe splits any key into its parts. For a key outside of every
// cluster, or of a kind that the table does not have, Problem says so.
func (t *Table) Describe(key []byte) KeyDescription {
	k := t.Parse(key)
	d := KeyDescription{Cluster: k.Cluster, Subspace: k.Subspace, Text: tuple.String(key), Escaped: EscapeKey(key)}
	if k.Shard >= 0 {
		d.Shard = &k.Shard
	}
	switch {
	case k.Kind != nil:
		d.Kind, d.Parts = k.Kind.Name, k.named()
	case k.Cluster == "":
		d.Problem = ProblemForeign
	default:
		d.Problem = ProblemUnknown
	}
	return d
}

// named returns the parts of a key, without the fixed names.
func (k *Key) named() (parts KeyParts) {
	for i, e := range k.Kind.Elements {
		var value any
		switch e.is {
		case elementName:
			continue
		case elementText, elementChoice:
			if value = k.parts[i].text; e.optional && value == "" {
				continue
			}
		case elementInt, elementIndex, elementPriority:
			value = k.parts[i].number
		case elementID:
			value = k.parts[i].id
		case elementStamp:
			value = StampText(k.stamp)
		}
		parts = append(parts, KeyPart{e.name, value})
	}
	return parts
}

// StampText formats a versionstamp as its version, its order within the version
// and, if not 0, its order within the transaction.
func StampText(s tuple.Stamp) string {
	version := s.Version()
	text := fmt.Sprintf("%x-%x", version[:8], version[8:])
	if s.User() != 0 {
		text += fmt.Sprintf("-%04x", s.User())
	}
	return text
}

// EscapeKey formats a key as fdbcli takes and prints it: bytes other than
// letters, digits and . _ - : / become \xNN.
func EscapeKey(key []byte) string {
	b := make([]byte, 0, 2*len(key))
	for _, c := range key {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', slices.Contains([]byte("._-:/"), c):
			b = append(b, c)
		default:
			b = fmt.Appendf(b, `\x%02x`, c)
		}
	}
	return string(b)
}

// UnescapeKey parses a key as EscapeKey and fdbcli print it: \xNN is a byte,
// \\, \" and "\ " stand for the character after the backslash. It returns
// ErrBadKey.
func UnescapeKey(text string) ([]byte, error) {
	bad := fmt.Errorf("%w: %.80q is not a key as fdbcli prints it: use \\xNN for a byte", ErrBadKey, text)
	key := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			key = append(key, text[i])
			continue
		}
		if i+1 == len(text) {
			return nil, bad
		}
		switch text[i+1] {
		case '\\', '"', ' ', ';':
			key = append(key, text[i+1])
			i++
		case 'x':
			digits, err := hex.DecodeString(text[i+2 : min(i+4, len(text))])
			if err != nil || len(digits) != 1 {
				return nil, bad
			}
			key = append(key, digits...)
			i += 3
		default:
			return nil, bad
		}
	}
	return key, nil
}
