<?php
// Verifies a webhook that is signed by v1a of Standard Webhooks, with PHP's own extension sodium.

function verify(string $publicKey, string $id, string $timestamp, string $signatures, string $body): bool
{
    if (abs(time() - (int) $timestamp) > 300) {
        return false;
    }
    $key = base64_decode(preg_replace('/^whpk_/', '', $publicKey));
    foreach (explode(' ', $signatures) as $one) {
        if (substr($one, 0, 4) !== 'v1a,') {
            continue;
        }
        $given = base64_decode(substr($one, 4));
        if (strlen($given) === SODIUM_CRYPTO_SIGN_BYTES && sodium_crypto_sign_verify_detached($given, "$id.$timestamp.$body", $key)) {
            return true;
        }
    }
    return false;
}

// In a server: $_SERVER['HTTP_WEBHOOK_ID'] and so on, and file_get_contents('php://input').
$body = file_get_contents('php://stdin');
if (!verify(getenv('TILL_WEBHOOK_PUBLIC_KEY'), getenv('webhook_id'), getenv('webhook_timestamp'), getenv('webhook_signature'), $body)) {
    fwrite(STDERR, "the signature does not hold\n");
    exit(1);
}
echo "verified\n";
