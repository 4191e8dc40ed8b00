package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// HTTPGenerator sends messages of a ledger to POST /api/inject/v1, one message a request. Set its fields before Run.
type HTTPGenerator struct {
	// Ledger numbers the messages; First and Count say which of them to send.
	Ledger       *Ledger
	First, Count int
	// URL is the base address of the server, such as "http://127.0.0.1:8000".
	URL string
	// Sender, Domain and Size are as those of [Generator].
	Sender string
	Domain func(id int) string
	Size   int
	// Concurrency is the number of requests at a time.
	Concurrency int
	// Timeout bounds every request.
	Timeout time.Duration

	next atomic.Int64
}

// Run sends all messages and returns when every one was answered, or at the first error.
func (g *HTTPGenerator) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tr := &http.Transport{MaxIdleConnsPerHost: g.Concurrency}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr, Timeout: g.Timeout}
	var wg sync.WaitGroup
	for range max(g.Concurrency, 1) {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := int(g.next.Add(1)) - 1
				if n >= g.Count {
					return
				}
				if err := g.send(ctx, client, g.First+n); err != nil {
					cancel(fmt.Errorf("http generator: %w", err))
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (g *HTTPGenerator) send(ctx context.Context, client *http.Client, id int) error {
	type recipient struct {
		Email string `json:"email"`
	}
	text := fmt.Sprintf("From: <%s>\r\nTo: <someone@load.example>\r\nSubject: load\r\n%s: %0*d\r\n\r\n", g.Sender, IDField,
		idDigits, id)
	if n := g.Size - len(text); n > 0 {
		text += strings.Repeat("A line of text that says nothing at all.\r\n", n/42+1)[:n-n%42]
	}
	body, err := json.Marshal(map[string]any{
		"envelope_sender": g.Sender,
		"recipients":      []recipient{{fmt.Sprintf("u%d@%s", id, g.Domain(id))}},
		"content":         text,
	})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL+"/api/inject/v1", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	if err != nil {
		return err
	}
	var counts struct {
		Success int `json:"success_count"`
	}
	if res.StatusCode != http.StatusOK || json.Unmarshal(answer, &counts) != nil || counts.Success != 1 {
		return fmt.Errorf("%s: %s", res.Status, bytes.TrimSpace(answer))
	}
	g.Ledger.Accepted(id)
	return nil
}
