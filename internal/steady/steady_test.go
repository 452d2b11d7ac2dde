package steady

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A body of many pieces goes through whole in both directions, over one connection.
func TestWholeBodies(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := &Writer{ResponseWriter: w}
		defer to.End()
		if _, err := io.Copy(to, Body(w, r)); err != nil {
			t.Error(err)
		}
		if !to.Begun {
			t.Error("nothing was written")
		}
	}))
	defer server.Close()
	long := strings.Repeat("sublet", 50_000)
	for range 2 {
		response, err := server.Client().Post(server.URL, "text/plain", strings.NewReader(long))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || !bytes.Equal(got, []byte(long)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
}
