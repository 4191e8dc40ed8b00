package mta

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Scheduling limits when a message may be tried (flows SQ-25). The zero value limits nothing.
type Scheduling struct {
	// FirstAttempt is the earliest first attempt; zero means at once.
	FirstAttempt time.Time `json:"first_attempt,omitzero"`
	// Expires replaces max_age; zero means max_age counts.
	Expires time.Time `json:"expires,omitzero"`
	// Window is the weekly delivery window, nil for always.
	Window *Window `json:"window,omitempty"`
}

// clone returns an independent copy.
func (s *Scheduling) clone() *Scheduling {
	c := *s
	if s.Window != nil {
		w := *s.Window
		c.Window = &w
	}
	return &c
}

// Window is a daily time span on some days of the week in one time zone.
type Window struct {
	// Days has bit 1<<time.Weekday set for each allowed day.
	Days uint8 `json:"days"`
	// Zone is an IANA time zone name.
	Zone string `json:"zone"`
	// Start and End are seconds since local midnight; End is exclusive and after Start.
	Start int `json:"start"`
	End   int `json:"end"`

	loc *time.Location
}

// Check validates the window and loads its time zone.
func (w *Window) Check() error {
	if w.Days&0x7f == 0 {
		return errors.New("scheduling: no day of the week")
	}
	if w.Start < 0 || w.End > 24*3600 || w.Start >= w.End {
		return errors.New("scheduling: start has to be before end, within one day")
	}
	if w.Zone == "" || w.Zone == "Local" { // LoadLocation knows them, the IANA does not
		return errors.New("scheduling: the time zone has to be an IANA name")
	}
	loc, err := time.LoadLocation(w.Zone)
	if err != nil {
		return fmt.Errorf("scheduling: unknown time zone %q", w.Zone)
	}
	w.loc = loc
	return nil
}

var weekdays = [7]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// ParseWeekdays reads names such as "Mon,Wed,Friday" into the bits of [Window].Days.
func ParseWeekdays(s string) (uint8, error) {
	var days uint8
next:
	for name := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		low := strings.ToLower(name)
		for i, full := range weekdays {
			if len(low) >= 3 && strings.HasPrefix(full, low) {
				days |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("scheduling: unknown day of the week %q", name)
	}
	return days, nil
}

// Adjust moves due forward into what s allows. A nil s allows everything.
func (s *Scheduling) Adjust(due time.Time) time.Time {
	if s == nil {
		return due
	}
	if due.Before(s.FirstAttempt) {
		due = s.FirstAttempt
	}
	if s.Window != nil {
		due = s.Window.adjust(due)
	}
	return due
}

// adjust returns due if it is inside the window, else the next start within 8 days (flows SQ-25).
func (w *Window) adjust(due time.Time) time.Time {
	loc := w.loc
	if loc == nil {
		var err error
		if loc, err = time.LoadLocation(w.Zone); err != nil {
			return due
		}
	}
	local := due.In(loc)
	for day := range 9 {
		y, mon, d := local.Date()
		start := time.Date(y, mon, d+day, 0, 0, w.Start, 0, loc)
		end := time.Date(y, mon, d+day, 0, 0, w.End, 0, loc)
		if w.Days&(1<<start.Weekday()) == 0 || !due.Before(end) {
			continue
		}
		if due.Before(start) {
			return start.In(due.Location())
		}
		return due
	}
	return due
}
