package protocol

import "encoding/json"

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
	compact, err := json.Marshal(json.RawMessage(data))
	*r = compact
	return err
}
