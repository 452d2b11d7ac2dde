package session

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestBound(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	bounded := Bound(2, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-leave
	}))
	serve := func() int {
		w := httptest.NewRecorder()
		bounded.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		return w.Code
	}
	codes := make(chan int)
	for range 2 {
		go func() { codes <- serve() }()
		<-inside
	}
	if code := serve(); code != http.StatusServiceUnavailable {
		t.Errorf("the third got %d", code)
	}
	leave <- struct{}{}
	<-codes
	go func() { codes <- serve() }()
	<-inside
	leave <- struct{}{}
	leave <- struct{}{}
	for range 2 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("one of two got %d", code)
		}
	}
}
