package sharing

import "context"

// Reach connects to the owner as a follower does.
func (d *Database) Reach(ctx context.Context) error {
	conn, err := d.dial(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

// ErrItself is returned where the owner is the process itself.
var ErrItself = errItself
