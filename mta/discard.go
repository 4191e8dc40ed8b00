package mta

import "context"

// Discard is for messages that nobody takes responsibility for: a policy refused them, or taking them in failed. What a
// policy had saved of them is removed again, so that the next start does not find mail that was refused, and they are
// released. It does its work even when ctx has ended.
func (s *Store) Discard(ctx context.Context, ms ...*Message) {
	for _, m := range ms {
		if m.spooled && !m.released {
			if err := s.Remove(context.WithoutCancel(ctx), m); err != nil {
				s.log.Error("a refused message stays in the spool and will be found at the next start", "id", m.id.String(), "err", err)
			}
			m.spooled = false
		}
		m.Release()
	}
}
