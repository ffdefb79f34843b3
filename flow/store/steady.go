package store

import (
	"slices"
	"strings"

	"till/flow"
)

// steady is what the units of one batch read again and again and hardly ever
// change: who is told of a project's money. They share one transaction, so what one
// of them has read holds for the next, until one of them writes there.
type steady struct {
	endpoints map[flow.ProjectID][]flow.Endpoint
}

// known are a project's endpoints, where the batch has read them.
func (s *steady) known(project flow.ProjectID) ([]flow.Endpoint, bool) {
	if s == nil {
		return nil, false
	}
	list, ok := s.endpoints[project]
	return slices.Clone(list), ok
}

func (s *steady) keep(project flow.ProjectID, list []flow.Endpoint) {
	if s == nil {
		return
	}
	if s.endpoints == nil {
		s.endpoints = map[flow.ProjectID][]flow.Endpoint{}
	}
	s.endpoints[project] = slices.Clone(list)
}

// forget forgets everything.
func (s *steady) forget() {
	if s != nil {
		clear(s.endpoints)
	}
}

// wrote forgets what a statement that writes may have changed.
func (s *steady) wrote(query string) {
	if s != nil && len(s.endpoints) > 0 && strings.Contains(query, "endpoints") {
		s.forget()
	}
}
