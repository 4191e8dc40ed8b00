package message

import (
	"fmt"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/settings"
)

// schedule is the table of set_scheduling (flows SQ-25).
type schedule struct {
	// FirstAttempt is the earliest first attempt, such as "2026-01-31T08:00:00Z".
	FirstAttempt *time.Time `set:"first_attempt"`
	// Expires is when the message expires; it replaces max_age.
	Expires *time.Time `set:"expires"`
	// DOW are the days of the week of the delivery window, such as "Mon,Tue".
	DOW string `set:"dow"`
	// TZ is the IANA time zone of the delivery window.
	TZ string `set:"tz"`
	// Start and End bound the delivery window on each day, as HH:MM:SS; the end is exclusive.
	Start string `set:"start"`
	End   string `set:"end"`
}

// Validate refuses a window that is given in part.
func (s *schedule) Validate() error {
	n := 0
	for _, v := range [4]string{s.DOW, s.TZ, s.Start, s.End} {
		if v != "" {
			n++
		}
	}
	if n != 0 && n != 4 {
		return settings.Fault("", "dow, tz, start and end go together")
	}
	_, err := s.window()
	return err
}

// window makes the delivery window, nil when there is none.
func (s *schedule) window() (*mta.Window, error) {
	if s.DOW == "" {
		return nil, nil
	}
	days, err := mta.ParseWeekdays(s.DOW)
	if err != nil {
		return nil, settings.Fault("dow", "%v", err)
	}
	w := &mta.Window{Days: days, Zone: s.TZ}
	for _, c := range []struct {
		name, text string
		into       *int
	}{{"start", s.Start, &w.Start}, {"end", s.End, &w.End}} {
		t, err := time.Parse(time.TimeOnly, c.text)
		if err != nil {
			return nil, settings.Fault(c.name, "want HH:MM:SS, got %q", c.text)
		}
		*c.into = t.Hour()*3600 + t.Minute()*60 + t.Second()
	}
	if err := w.Check(); err != nil {
		return nil, settings.Fault("", "%v", err)
	}
	return w, nil
}

// setScheduling returns what it was given, with all fields.
func setScheduling(m *mta.Message, s *schedule) (*schedule, error) {
	if s == nil {
		m.SetScheduling(nil)
		return nil, nil
	}
	w, err := s.window()
	if err != nil {
		return nil, err
	}
	limits := &mta.Scheduling{Window: w}
	if s.FirstAttempt != nil {
		limits.FirstAttempt = *s.FirstAttempt
	}
	if s.Expires != nil {
		limits.Expires = *s.Expires
	}
	m.SetScheduling(limits)
	return s, nil
}

// setDue moves the next attempt to an ISO 8601 time, or to now, and into what the scheduling allows.
func setDue(m *mta.Message, due *string) (string, error) {
	t := time.Now()
	if due != nil {
		var err error
		if t, err = time.Parse(time.RFC3339, *due); err != nil {
			return "", fmt.Errorf("set_due: want a time such as 2026-01-31T08:00:00Z, got %q", *due)
		}
	}
	t = m.Scheduling().Adjust(t)
	m.SetDue(t)
	return t.UTC().Format(time.RFC3339Nano), nil
}
