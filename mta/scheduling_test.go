package mta

import (
	"testing"
	"time"
)

func days(t *testing.T, names string) uint8 {
	t.Helper()
	d, err := ParseWeekdays(names)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// 2026-03-02 is a Monday. New York leaves standard time on Sunday 2026-03-08 and returns on Sunday 2026-11-01; Berlin
// does on 2026-03-29 and 2026-10-25.
func TestAdjust(t *testing.T) {
	const ny, berlin = "America/New_York", "Europe/Berlin"
	h := func(hour, minute int) int { return hour*3600 + minute*60 }
	for _, tc := range []struct {
		name       string
		days, zone string
		start, end int
		first      string
		due, want  string
	}{
		{"SQ-25 inside", "mon", "UTC", h(9, 0), h(17, 0), "", "2026-03-02T12:00:00Z", "2026-03-02T12:00:00Z"},
		{"SQ-25 before the start", "mon", "UTC", h(9, 0), h(17, 0), "", "2026-03-02T08:59:59Z", "2026-03-02T09:00:00Z"},
		{"SQ-25 at the start", "mon", "UTC", h(9, 0), h(17, 0), "", "2026-03-02T09:00:00Z", "2026-03-02T09:00:00Z"},
		{"SQ-25 the last moment", "mon,tue", "UTC", h(9, 0), h(17, 0), "", "2026-03-02T16:59:59.999Z", "2026-03-02T16:59:59.999Z"},
		{"SQ-25 end is exclusive", "mon,tue", "UTC", h(9, 0), h(17, 0), "", "2026-03-02T17:00:00Z", "2026-03-03T09:00:00Z"},
		{"SQ-25 after the end, a week on", "mon", "UTC", h(9, 0), h(17, 0), "", "2026-03-02T20:00:00Z", "2026-03-09T09:00:00Z"},
		{"SQ-25 another day", "fri", "UTC", h(9, 0), h(17, 0), "", "2026-03-02T12:00:00Z", "2026-03-06T09:00:00Z"},
		{"SQ-25 over the weekend", "mon,tue,wed,thu,fri", "UTC", 0, h(24, 0), "", "2026-03-07T00:00:00Z", "2026-03-09T00:00:00Z"},
		{"SQ-25 whole day", "sun", "UTC", 0, h(24, 0), "", "2026-03-08T23:59:59Z", "2026-03-08T23:59:59Z"},
		{"SQ-25 the zone's day counts", "mon", ny, h(9, 0), h(17, 0), "", "2026-03-03T01:00:00Z", "2026-03-09T13:00:00Z"},
		{"SQ-25 east of UTC", "tue", "Asia/Tokyo", h(6, 0), h(9, 0), "", "2026-03-02T20:00:00Z", "2026-03-02T21:00:00Z"},
		{"SQ-25 clocks go forward", "sun", ny, h(9, 0), h(10, 0), "", "2026-03-08T04:59:00Z", "2026-03-08T13:00:00Z"},
		{"SQ-25 the week before they do", "sun", ny, h(9, 0), h(10, 0), "", "2026-03-01T04:59:00Z", "2026-03-01T14:00:00Z"},
		{"SQ-25 clocks go back", "sun", ny, h(9, 0), h(10, 0), "", "2026-11-01T05:00:00Z", "2026-11-01T14:00:00Z"},
		{"SQ-25 the hour that comes twice", "sun", ny, h(1, 0), h(2, 0), "", "2026-11-01T06:30:00Z", "2026-11-01T06:30:00Z"},
		{"SQ-25 Berlin, forward", "sun", berlin, h(9, 0), h(10, 0), "", "2026-03-29T00:30:00Z", "2026-03-29T07:00:00Z"},
		{"SQ-25 Berlin, back", "sun", berlin, h(9, 0), h(10, 0), "", "2026-10-25T00:30:00Z", "2026-10-25T08:00:00Z"},
		{"SQ-25 first attempt", "", "", 0, 0, "2026-03-05T00:00:00Z", "2026-03-02T12:00:00Z", "2026-03-05T00:00:00Z"},
		{"SQ-25 first attempt passed", "", "", 0, 0, "2026-03-01T00:00:00Z", "2026-03-02T12:00:00Z", "2026-03-02T12:00:00Z"},
		{"SQ-25 first attempt, then window", "mon", "UTC", h(9, 0), h(17, 0), "2026-03-05T00:00:00Z", "2026-03-02T12:00:00Z", "2026-03-09T09:00:00Z"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			at := func(s string) time.Time {
				v, err := time.Parse(time.RFC3339, s)
				if err != nil && s != "" {
					t.Fatal(err)
				}
				return v
			}
			s := &Scheduling{FirstAttempt: at(tc.first)}
			if tc.days != "" {
				s.Window = &Window{Days: days(t, tc.days), Zone: tc.zone, Start: tc.start, End: tc.end}
			}
			unchecked := s.Adjust(at(tc.due))
			if s.Window != nil {
				if err := s.Window.Check(); err != nil {
					t.Fatal(err)
				}
			}
			got := s.Adjust(at(tc.due))
			if !got.Equal(at(tc.want)) || !unchecked.Equal(got) {
				t.Errorf("%v moved to %v, without Check to %v; want %v", tc.due, got, unchecked, tc.want)
			}
			if again := s.Adjust(got); !again.Equal(got) {
				t.Errorf("%v is not inside: moved on to %v", got, again)
			}
		})
	}
	now := time.Now()
	if got := (*Scheduling)(nil).Adjust(now); !got.Equal(now) {
		t.Errorf("SQ-25 without limits: %v", got)
	}
}

func TestWindowCheck(t *testing.T) {
	for name, w := range map[string]Window{
		"no day":            {Zone: "UTC", End: 1},
		"no day of seven":   {Days: 0x80, Zone: "UTC", End: 1},
		"over midnight":     {Days: 1, Zone: "UTC", Start: 80000, End: 3600},
		"empty":             {Days: 1, Zone: "UTC", Start: 60, End: 60},
		"negative":          {Days: 1, Zone: "UTC", Start: -1, End: 60},
		"over a day":        {Days: 1, Zone: "UTC", End: 24*3600 + 1},
		"no zone":           {Days: 1, End: 60},
		"zone of the host":  {Days: 1, Zone: "Local", End: 60},
		"unknown zone":      {Days: 1, Zone: "Mars/Base", End: 60},
		"zone with a climb": {Days: 1, Zone: "../../etc/passwd", End: 60},
	} {
		if w.Check() == nil {
			t.Errorf("SQ-25 %s: accepted", name)
		}
	}
	w := Window{Days: 0x7f, Zone: "Europe/Berlin", End: 24 * 3600}
	if err := w.Check(); err != nil {
		t.Error(err)
	}
}

func TestParseWeekdays(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want uint8
		ok   bool
	}{
		{"Mon,Wed,Friday", 1<<1 | 1<<3 | 1<<5, true}, {"sunday", 1, true}, {"SAT, sun", 1<<6 | 1, true},
		{"thurs,thu", 1 << 4, true}, {"", 0, true}, {"mo", 0, false}, {"mon,xyz", 0, false}, {"mondays", 0, false},
	} {
		got, err := ParseWeekdays(tc.in)
		if (err == nil) != tc.ok || got != tc.want {
			t.Errorf("%q: %#x, %v", tc.in, got, err)
		}
	}
}

// A window from the store knows its zone, which costs one look into the zone database for all messages.
func TestSchedulingFromStore(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	m := r.New(envelope, nil)
	m.SetScheduling(&Scheduling{Window: &Window{Days: 1, Zone: "Europe/Berlin", End: 60}})
	if err := m.Save(ctx); err != nil {
		t.Fatal(err)
	}
	a, errA := r.Load(ctx, m.ID())
	b, errB := r.Load(ctx, m.ID())
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if loc := a.Scheduling().Window.loc; loc == nil || loc != b.Scheduling().Window.loc || loc.String() != "Europe/Berlin" {
		t.Errorf("zone %v", loc)
	}
	m.SetScheduling(&Scheduling{Window: &Window{Days: 1, Zone: "Mars/Base", End: 60}})
	if err := m.Save(ctx); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if a, err := r.Load(ctx, m.ID()); err != nil || !a.Scheduling().Adjust(now).Equal(now) {
		t.Errorf("a zone this machine does not know holds the message back: %v", err)
	}
}
