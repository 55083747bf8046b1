package futures

// MaxCommitters is the maximum number of concurrent transactions for Submits.
const MaxCommitters = maxCommitters

// CheckJSON checks a value that comes in two parts.
func CheckJSON(a, b []byte) error {
	var j jsonChecker
	for _, p := range [][]byte{a, b} {
		if err := j.write(p); err != nil {
			return err
		}
	}
	return j.end()
}

// SendsHints reports whether the client sends hints.
func (c *Client) SendsHints() bool { return c.hints != nil }

// HintMail says that there may be mail.
func (c *Client) HintMail() { c.listener.hint() }
