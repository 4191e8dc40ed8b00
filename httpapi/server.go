package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"example.com/svc/httpapi/inject"
	"example.com/svc/mta"
	"example.com/svc/mta/cache"
	"example.com/svc/mta/event"
	"example.com/svc/mta/metric"
)

// Options are the parts a [Server] works with. Injector and Metrics are needed.
type Options struct {
	Bus      event.Bus
	Injector *inject.Injector
	// Gate says whether new mail is accepted; it decides liveness too.
	Gate    mta.Gate
	Metrics *metric.Set
	Log     *slog.Logger
}

// Server is one HTTP listener.
type Server struct {
	cfg      Config
	o        Options
	log      *slog.Logger
	hostname string
	listener net.Listener
	// logins keeps answers about credentials; the key is a digest of user and password.
	logins *cache.Cache[[sha256.Size]byte, bool]
}

// Time limits of a connection: a peer that is slow to send or to read is dropped.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 5 * time.Minute
	idleTimeout   = 2 * time.Minute
)

// New makes a listener that is not bound yet.
func New(cfg Config, o Options) (*Server, error) {
	s := &Server{cfg: cfg, o: o, log: o.Log, hostname: cfg.Hostname,
		logins: cache.New[[sha256.Size]byte, bool](cache.Options{Capacity: 128, ErrorTTL: -1})}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.hostname == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("http listener: no hostname: %w", err)
		}
		s.hostname = name
	}
	return s, nil
}

// Listen binds the address. The error names it and the place of declaration.
func (s *Server) Listen(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.cfg.Listen.String())
	if err != nil {
		where := ""
		if s.cfg.Source != "" {
			where = s.cfg.Source + ": "
		}
		return fmt.Errorf("%scannot start the http listener on %s: %w", where, s.cfg.Listen, err)
	}
	s.listener = l
	return nil
}

// Addr returns the bound address, nil before Listen.
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Close releases the address of a server that does not run.
func (s *Server) Close() error {
	if s.listener == nil {
		return nil
	}
	return s.listener.Close()
}

// Run serves until ctx ends, then lets requests in progress finish for a short while and returns.
func (s *Server) Run(ctx context.Context) error {
	hs := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      bodyTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if hs.Shutdown(end) != nil {
			_ = hs.Close()
		}
	})
	err := hs.Serve(s.listener)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("http listener on %s: %w", s.cfg.Listen, err)
}

// Handler returns the API as a handler, for tests and for embedding in another HTTP server.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	paths := map[string][]route{}
	for _, r := range s.routes() {
		paths[r.path] = append(paths[r.path], r)
	}
	for path, rs := range paths {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, rs) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, nil) })
	return s.recovered(mux)
}

// recovered catches a panic of a handler: it is a bug, logged and answered 500, and concerns one request.
func (s *Server) recovered(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(v)
				}
				s.log.Error("panic in an HTTP handler", "path", r.URL.Path, "panic", v, "stack", stack())
				textError(w, http.StatusInternalServerError, "internal error")
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// serve is the way of one request: host, who, may, do.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, rs []route) {
	who, status, text := s.authenticate(r)
	if status != 0 {
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="svc"`)
		}
		textError(w, status, text)
		return
	}
	rt, found := route{may: trustedOnly}, false
	for _, c := range rs {
		if c.method == r.Method {
			rt, found = c, true
		}
	}
	if !rt.may(who) {
		w.Header().Set("WWW-Authenticate", `Basic realm="svc"`)
		textError(w, http.StatusUnauthorized, fmt.Sprintf("%s not permitted %s on http_listener/%s%s", name(who), r.Method,
			s.cfg.Listen, r.URL.Path))
		return
	}
	switch {
	case found:
		rt.do(w, r, who)
	case rs != nil:
		for _, c := range rs {
			w.Header().Add("Allow", c.method)
		}
		textError(w, http.StatusMethodNotAllowed, "method not allowed")
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func name(who *caller) string {
	if len(who.Auth.Identities) > 0 {
		return who.Auth.Identities[0].Identity
	}
	return who.Peer.String()
}

// textError answers in the form of handler errors: text/plain "Error: <message>".
func textError(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte("Error: " + text))
}

func remote(r *http.Request) (netip.Addr, netip.AddrPort) {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	var local netip.AddrPort
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		local = a.AddrPort()
	}
	return peer.Addr().Unmap(), netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
}
