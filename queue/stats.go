package queue

import (
	"iter"

	"example.com/svc/mta"
)

// Stats are figures of a [Manager] at one moment.
type Stats struct {
	// Queues is the number of scheduled queues.
	Queues int
	// Messages is the number of messages in all of them; Scheduled are those that wait, Lent those with the outlet or on
	// their way out of the spool.
	Messages, Scheduled, Lent int
	// ResidentBytes is the size of the bodies kept in memory for immediate delivery.
	ResidentBytes int64
}

// Stats returns the figures of the moment. They are read one after the other.
func (m *Manager) Stats() Stats {
	return Stats{
		Queues:        m.reg.len(),
		Messages:      int(m.held.Load()),
		Scheduled:     int(m.scheduled.Load()),
		Lent:          int(m.lent.Load()),
		ResidentBytes: m.resident.Load(),
	}
}

// QueueStats are figures of one scheduled queue.
type QueueStats struct {
	// Name is the queue, and Queue its text.
	Name  mta.QueueName
	Queue string
	// Messages is the number of its messages wherever they are; Scheduled are those that wait.
	Messages, Scheduled int
	// Config is what it obeys; read-only.
	Config *Config
}

// Queues yields all scheduled queues in no particular order. It holds no lock while it yields.
func (m *Manager) Queues() iter.Seq[QueueStats] {
	return func(yield func(QueueStats) bool) {
		more := true
		m.reg.each(func(q *scheduled) {
			more = more && yield(QueueStats{Name: q.name, Queue: q.text, Messages: int(q.held.Load()),
				Scheduled: int(q.scheduled.Load()), Config: q.cfg.Load()})
		})
	}
}
