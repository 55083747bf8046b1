package protocol

import (
	"bytes"
	"encoding/json"
)

// Raw is any JSON, as it stands in a message.
type Raw []byte

// MarshalJSON writes it.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON keeps it without white space. A null is none.
func (r *Raw) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*r = nil
		return nil
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, data)
	*r = bytes.Clone(compact.Bytes())
	return err
}

// written is how many bytes it has in a message that Encode writes, where some characters
// take six.
func (r Raw) written() int {
	n := len(r)
	for _, c := range []string{"<", ">", "&", "\u2028", "\u2029"} {
		n += bytes.Count(r, []byte(c)) * (len(`\u0000`) - len(c))
	}
	return n
}
