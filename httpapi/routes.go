package httpapi

import (
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"example.com/svc/httpapi/api"
	"example.com/svc/httpapi/inject"
)

// route is one row of the table of the API.
type route struct {
	method, path string
	// may is the rule of the built-in access list.
	may func(*caller) bool
	do  func(http.ResponseWriter, *http.Request, *caller)
}

// routes is the API (spec http.json).
func (s *Server) routes() []route {
	return []route{
		{"GET", "/api/check-liveness/v1", anyone, s.liveness},
		{"POST", "/api/inject/v1", trustedOrKnown, s.inject},
		{"GET", "/metrics", trustedOnly, s.metricsText},
		{"GET", "/metrics.json", trustedOnly, s.metricsJSON},
	}
}

// liveness says whether mail can be accepted now.
func (s *Server) liveness(w http.ResponseWriter, _ *http.Request, _ *caller) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if refusal := s.o.Gate.Check(); refusal != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, refusal.Reason)
		return
	}
	_, _ = io.WriteString(w, "OK")
}

func (s *Server) metricsText(w http.ResponseWriter, r *http.Request, _ *caller) {
	prefix := r.URL.Query().Get("prefix")
	if strings.ContainsFunc(prefix, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != ':'
	}) || len(prefix) > 64 {
		textError(w, http.StatusBadRequest, "bad prefix")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	s.write(w, r, func(w io.Writer) error { return s.o.Metrics.WritePrometheus(w, prefix) })
}

func (s *Server) metricsJSON(w http.ResponseWriter, r *http.Request, _ *caller) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	s.write(w, r, s.o.Metrics.WriteJSON)
}

// write sends what fn writes, compressed when the client accepts it.
func (s *Server) write(w http.ResponseWriter, r *http.Request, fn func(io.Writer) error) {
	var out io.Writer = w
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		zw := gzip.NewWriter(w)
		defer zw.Close()
		out = zw
	}
	if err := fn(out); err != nil {
		s.log.Debug("response not written", "path", r.URL.Path, "err", err)
	}
}

// inject carries out an injection request.
func (s *Server) inject(w http.ResponseWriter, r *http.Request, who *caller) {
	if refusal := s.o.Gate.Check(); refusal != nil {
		textError(w, http.StatusServiceUnavailable, refusal.Reason)
		return
	}
	var req api.InjectV1Request
	if !s.decode(w, r, &req) {
		return
	}
	res, err := s.o.Injector.Inject(r.Context(), &req, who.Origin)
	var fault *inject.RequestError
	switch {
	case errors.As(err, &fault):
		textError(w, http.StatusUnprocessableEntity, fault.Error())
	case err != nil:
		textError(w, http.StatusInternalServerError, err.Error())
	default:
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(res); err != nil {
			s.log.Debug("response not written", "path", r.URL.Path, "err", err)
		}
	}
}

// decode reads a JSON body into dst; on a fault it answers and returns false.
func (s *Server) decode(w http.ResponseWriter, r *http.Request, dst any) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		textError(w, http.StatusUnsupportedMediaType, "Expected request with `Content-Type: application/json`")
		return false
	}
	body, err := s.body(w, r)
	if err != nil {
		s.bodyError(w, err)
		return false
	}
	err = json.Unmarshal(body, dst)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return true
	case errors.As(err, &syntax):
		textError(w, http.StatusBadRequest, fmt.Sprintf("the request body is not JSON, at byte %d: %s", syntax.Offset, err))
	default:
		textError(w, http.StatusUnprocessableEntity, "the request body does not fit: "+err.Error())
	}
	return false
}

// tooLargeText is the contract's answer to a body over the limit (settings request_body_limit).
const tooLargeText = "Failed to buffer the request body: length limit exceeded"

var (
	errTooLarge = errors.New("request body over the limit")
	errEncoding = errors.New("unsupported Content-Encoding, want gzip or deflate")
)

// body reads the decompressed body up to request_body_limit bytes.
func (s *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limit := int64(s.cfg.RequestBodyLimit)
	if r.ContentLength > limit {
		return nil, errTooLarge
	}
	var in io.Reader = http.MaxBytesReader(w, r.Body, limit)
	switch enc := r.Header.Get("Content-Encoding"); enc {
	case "", "identity":
	case "gzip":
		zr, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("gzip body: %w", err)
		}
		in = zr
	case "deflate":
		zr, err := zlib.NewReader(in) // RFC 9110 section 8.4.1.2
		if err != nil {
			return nil, fmt.Errorf("deflate body: %w", err)
		}
		in = zr
	default:
		return nil, errEncoding
	}
	body, err := io.ReadAll(io.LimitReader(in, limit+1))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge) || int64(len(body)) > limit:
		return nil, errTooLarge
	case err != nil:
		return nil, fmt.Errorf("read the request body: %w", err)
	}
	return body, nil
}

func (s *Server) bodyError(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, errTooLarge):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, tooLargeText)
	case errors.Is(err, errEncoding):
		textError(w, http.StatusUnsupportedMediaType, err.Error())
	default:
		textError(w, http.StatusBadRequest, err.Error())
	}
}
