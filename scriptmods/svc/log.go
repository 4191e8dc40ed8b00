package svc

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"

	"example.com/svc/mta"
	"example.com/svc/script"
)

func (m *module) logFuncs() []script.Func {
	fn := func(name string, level slog.Level) script.Func {
		return script.Fn("log_"+name, "Writes the values to the diagnostic log at level "+level.String()+".",
			func(ctx context.Context, values ...any) { m.write(ctx, level, values) }, "value")
	}
	return []script.Func{fn("debug", slog.LevelDebug), fn("info", slog.LevelInfo), fn("warn", slog.LevelWarn),
		fn("error", slog.LevelError)}
}

// write logs "file:line: " and the values joined by one space.
func (m *module) write(ctx context.Context, level slog.Level, values []any) {
	if !m.log.Enabled(ctx, level) {
		return
	}
	var b strings.Builder
	if p := script.Place(ctx); p != "" {
		b.WriteString(p + ": ")
	}
	for i, v := range values {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(text(v))
	}
	m.log.Log(ctx, level, b.String())
}

// text is a value of a policy as people read it. Tables are shown as JSON.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return strings.ToLower(strings.TrimPrefix(fmt.Sprint(v), "+"))
		}
		return fmt.Sprintf("%.14g", v)
	case *mta.Message:
		return "message " + v.ID().String()
	case error:
		return v.Error()
	case fmt.Stringer:
		return v.String()
	case *script.Callback:
		return "function"
	case []any, map[string]any:
		return tableText(v)
	}
	return strings.TrimLeft(fmt.Sprintf("%T", v), "*")
}

// tableText shows a table; what JSON cannot say is shown as text inside of it.
func tableText(v any) string {
	b, err := json.Marshal(sayable(v))
	if err != nil {
		return "table"
	}
	return string(b)
}

func sayable(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = sayable(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = sayable(e)
		}
		return out
	case nil, string, bool, int64:
		return v
	case float64:
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			return v
		}
	}
	return text(v)
}
