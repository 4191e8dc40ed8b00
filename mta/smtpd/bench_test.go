package smtpd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
)

// looped is a connection whose peer repeats one transaction n times.
type looped struct {
	script
	once []byte
	n    int
}

func (c *looped) Read(p []byte) (int, error) {
	if len(c.in) == 0 {
		if c.n == 0 {
			return 0, io.EOF
		}
		c.n--
		c.in = c.once
	}
	return c.script.Read(p)
}

func (c *looped) Write(p []byte) (int, error) { return len(p), nil }

func transactionText(size int) []byte {
	line := strings.Repeat("abcdefgh. ", 7) + "ijkl\r\n"
	return []byte("MAIL FROM:<a@send.example>\r\nRCPT TO:<b@dest.example>\r\nDATA\r\n" +
		"Subject: x\r\n\r\n" + strings.Repeat(line, size/len(line)) + ".\r\n")
}

func unlimited(c *Config, o *Options) {
	c.MaxMessagesPerConnection = 1 << 30
	o.Inbound = discard{}
}

// BenchmarkReceive is one transaction of one session in memory: what the engine costs without the kernel.
func BenchmarkReceive(b *testing.B) {
	for _, size := range []int{1 << 10, 10 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			t := newBench(b, unlimited)
			once := transactionText(size)
			c := &looped{script: script{piece: 64 << 10}, once: once, n: b.N}
			b.ReportAllocs()
			b.SetBytes(int64(len(once)))
			b.ResetTimer()
			t.srv.ServeConn(context.Background(), c)
		})
	}
}

// BenchmarkLoopback is one 10 KB transaction over loopback with pipelined commands, client included.
func BenchmarkLoopback(b *testing.B) {
	t := newBench(b, unlimited, onLoopback)
	addr := t.start(b)
	once := transactionText(10 << 10)
	head, body, _ := strings.Cut(string(once), "DATA\r\n")
	head += "DATA\r\n"
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		lines := func(n int) {
			for range n {
				if _, err := r.ReadSlice('\n'); err != nil {
					b.Error(err)
					return
				}
			}
		}
		lines(1)
		for pb.Next() {
			_, _ = io.WriteString(conn, head)
			lines(3)
			_, _ = io.WriteString(conn, body)
			lines(1)
		}
	})
}

// TestIdleSessionsAreSmall: 10,000 idle sessions have to fit in 24 KB each; measured with 400, in memory.
func TestIdleSessionsAreSmall(t *testing.T) {
	b := newBench(t)
	const n = 400
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ends := make([]net.Conn, n)
	done := make(chan struct{}, n)
	buf := make([]byte, 512)
	for i := range ends {
		near, far := net.Pipe()
		ends[i] = near
		go func() {
			b.srv.ServeConn(ctx, &addrConn{far, tcpAddr(here), tcpAddr(trusted)})
			done <- struct{}{}
		}()
		for _, cmd := range []string{"", "EHLO client.example\r\n", "MAIL FROM:<a@send.example>\r\n"} {
			if cmd != "" {
				_, _ = io.WriteString(near, cmd)
			}
			if _, err := near.Read(buf); err != nil {
				t.Fatal(err)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapInuse + after.StackInuse - before.HeapInuse - before.StackInuse) / n
	t.Logf("%d bytes for each idle session", each)
	if each > 24<<10 {
		t.Errorf("an idle session takes %d bytes", each)
	}
	for _, c := range ends {
		c.Close()
	}
	for range n {
		<-done
	}
}
