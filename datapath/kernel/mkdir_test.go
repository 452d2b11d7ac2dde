package kernel

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Directories are made although another host removes the empty ones above them.
func TestMkdirAllBesideTidy(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "kind")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Microsecond):
				_ = os.Remove(shared)
			}
		}
	}()
	mine := filepath.Join(shared, "h1")
	for range 500 {
		if err := MkdirAll(mine, 0o700); err != nil {
			t.Error(err)
			break
		}
		if err := os.Remove(mine); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	<-stopped
}
