package main

import (
	"errors"
	"fmt"
	"strings"
)

// refusedError is what Till's rules do not allow, however it is called: exit
// code 3.
type refusedError struct{ error }

// liveKey and testKey are how secret keys begin.
const (
	liveKey = "sk_live_"
	testKey = "sk_test_"
)

// errNeedsYes refuses what cannot be undone and was not meant for certain.
func errNeedsYes(what string) error {
	return refusedError{fmt.Errorf("%s cannot be undone: say --yes", what)}
}

// mayUse refuses a key for a command that live says is meant for real money, or
// not.
func mayUse(key string, live bool) error {
	switch {
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return usageError{errors.New("this is no secret key: a blank, a line break or a strange letter stands in it")}
	case strings.HasPrefix(key, liveKey) && !live:
		return refusedError{errors.New("this is a live key, and real money: say --live")}
	case strings.HasPrefix(key, testKey) && live:
		return usageError{errors.New("--live needs a live key, and this is a test key")}
	case !strings.HasPrefix(key, testKey) && !strings.HasPrefix(key, liveKey):
		return usageError{errors.New("this is no secret key: it begins with " + testKey + " or " + liveKey)}
	}
	return nil
}

// testOnly refuses a live key for a command that plays with what is pretended.
func testOnly(key string) error {
	if strings.HasPrefix(key, liveKey) {
		return refusedError{errors.New("this is for test keys alone: nothing is pretended with real money")}
	}
	return mayUse(key, false)
}
