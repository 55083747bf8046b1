package modules

import "context"

// Retire is the first step of Remove.
func (s *Modules) Retire(ctx context.Context, id string) error {
	_, err := s.retire(ctx, id, 1)
	return err
}
