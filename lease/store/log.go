package store

import (
	"context"
	"log/slog"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapLogger lets etcd speak through slog. Its warnings are mostly about
// timing and go to debug; what ends it is an error here too. While it is
// closing, only what ends the process is said: etcd calls its own closed
// listeners errors.
func zapLogger(to *slog.Logger, closing *atomic.Bool) *zap.Logger {
	return zap.New(slogCore{to: to, closing: closing})
}

// slogCore is a zapcore.Core on a slog.Logger.
type slogCore struct {
	to      *slog.Logger
	closing *atomic.Bool
	fields  []zapcore.Field
}

func (c slogCore) Enabled(level zapcore.Level) bool {
	least := zapcore.WarnLevel
	if c.closing.Load() {
		least = zapcore.PanicLevel
	}
	return level >= least && c.to.Enabled(context.Background(), slogLevel(level))
}

func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	c.fields = append(c.fields[:len(c.fields):len(c.fields)], fields...)
	return c
}

func (c slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range c.fields {
		f.AddTo(values)
	}
	for _, f := range fields {
		f.AddTo(values)
	}
	c.to.LogAttrs(context.Background(), slogLevel(entry.Level), entry.Message, slog.Any("fields", values.Fields))
	return nil
}

func (slogCore) Sync() error { return nil }

func slogLevel(level zapcore.Level) slog.Level {
	if level >= zapcore.ErrorLevel {
		return slog.LevelError
	}
	return slog.LevelDebug
}
