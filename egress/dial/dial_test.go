package dial

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func listen(t *testing.T) (netip.AddrPort, <-chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan net.Conn, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err == nil {
			got <- c
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().(*net.TCPAddr).AddrPort(), got
}

func TestDialBindsSource(t *testing.T) {
	addr, got := listen(t)
	src := netip.MustParseAddr("127.0.0.5")
	var d Dialer
	c, err := d.Dial(t.Context(), Request{Source: src, Target: addr, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	peer := <-got
	defer peer.Close()
	if from := peer.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(); from != src {
		t.Errorf("SC-9: connection came from %s, want %s", from, src)
	}
}

func TestDialErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().(*net.TCPAddr).AddrPort()
	l.Close()
	tests := []struct {
		name      string
		r         Request
		family    bool
		unplumbed bool
	}{
		{"SC-9 other family", Request{Source: netip.MustParseAddr("::1"), Target: closed}, true, false},
		{"SS-10 address of another host", Request{Source: netip.MustParseAddr("192.0.2.77"), Target: closed}, false, true},
		{"refused", Request{Target: closed}, false, false},
		{"no target", Request{}, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var d Dialer
			_, err := d.Dial(t.Context(), tt.r)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want *Error", err)
			}
			if errors.Is(err, ErrFamily) != tt.family || e.Unplumbed() != tt.unplumbed {
				t.Errorf("%v: family %v, unplumbed %v", err, errors.Is(err, ErrFamily), e.Unplumbed())
			}
		})
	}
}

func TestDialTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := Dialer{Network: func(ctx context.Context, r Request) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		start := time.Now()
		_, err := d.Dial(t.Context(), Request{Target: netip.MustParseAddrPort("192.0.2.1:25"), Timeout: time.Minute})
		var e *Error
		if !errors.As(err, &e) || !e.Timeout() {
			t.Errorf("DI2: got %v, want a timeout", err)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("DI2: took %s", took)
		}
	})
}
