"""URLs that are nearly right: what each looser rule for a certificate's URL would have let pass."""

HOST = "sns.eu-west-1.amazonaws.com"
NAME = "SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"
GOOD = f"https://{HOST}/{NAME}"

# For the topic in eu-west-1.
CERTIFICATE_URLS = (
    # buckets, whose names anybody may choose
    f"https://s3.amazonaws.com/bkt/{NAME}",
    f"https://bkt.s3.amazonaws.com/{NAME}",
    f"https://s3-eu-west-1.amazonaws.com/bkt/{NAME}",
    f"https://sns.eu-west-1.s3.amazonaws.com/{NAME}",
    f"https://sns.s3.amazonaws.com/{NAME}",
    f"https://sns-eu-west-1.s3.amazonaws.com/{NAME}",
    f"https://sns.eu-west-1.amazonaws.com.s3.amazonaws.com/{NAME}",
    f"https://abc.execute-api.eu-west-1.amazonaws.com/{NAME}",
    f"https://ec2-1-2-3-4.eu-west-1.compute.amazonaws.com/{NAME}",
    # other names
    f"https://{HOST}.evil.example/{NAME}",
    f"https://{HOST}evil.example/{NAME}",
    f"https://evil.example/{HOST}/{NAME}",
    f"https://evil.example/{NAME}?{HOST}",
    f"https://evil.example/{NAME}#{HOST}",
    f"https://evilsns.eu-west-1.amazonaws.com/{NAME}",
    f"https://x.{HOST}/{NAME}",
    f"https://{HOST}./{NAME}",
    f"https://sns-eu-west-1xamazonaws.com/{NAME}",
    f"https://sns.eu-west-1.amazonaws.org/{NAME}",
    f"https://sns.eu-west-1.amazonaws.com.cn.evil.example/{NAME}",
    f"https://sns.amazonaws.com/{NAME}",
    f"https://sns..amazonaws.com/{NAME}",
    f"https://amazonaws.com/{NAME}",
    # other regions and partitions
    f"https://sns.us-east-1.amazonaws.com/{NAME}",
    f"https://sns.eu-west-1.amazonaws.com.cn/{NAME}",
    f"https://sns.cn-north-1.amazonaws.com.cn/{NAME}",
    # in front of the host, behind it, and instead of it
    f"https://{HOST}@evil.example/{NAME}",
    f"https://{HOST}:443@evil.example/{NAME}",
    f"https://user@{HOST}/{NAME}",
    f"https://user:pass@{HOST}/{NAME}",
    f"https://@{HOST}/{NAME}",
    f"https://{HOST}:8443/{NAME}",
    f"https://{HOST}:443/{NAME}",
    f"https://{HOST}:/{NAME}",
    f"https://{HOST}\\@evil.example/{NAME}",
    f"https://evil.example\\.{HOST}/{NAME}",
    f"https://{HOST}%2f@evil.example/{NAME}",
    f"https://{HOST}%00.evil.example/{NAME}",
    "https://127.0.0.1/" + NAME,
    "https://2130706433/" + NAME,
    "https://169.254.169.254/" + NAME,
    "https://[::ffff:127.0.0.1]/" + NAME,
    "https://localhost/" + NAME,
    # schemes
    f"http://{HOST}/{NAME}",
    f"HTTPS://{HOST}/{NAME}",
    f"ftp://{HOST}/{NAME}",
    f"file://{HOST}/{NAME}",
    f"//{HOST}/{NAME}",
    f"https:{HOST}/{NAME}",
    f"https:/{HOST}/{NAME}",
    f"https:///{HOST}/{NAME}",
    f"javascript://{HOST}/{NAME}",
    # paths
    f"https://{HOST}/other.pem",
    f"https://{HOST}/x/{NAME}",
    f"https://{HOST}//{NAME}",
    f"https://{HOST}/../{NAME}",
    f"https://{HOST}/{NAME}/",
    f"https://{HOST}/{NAME}/../x.pem",
    f"https://{HOST}/{NAME}?x=1",
    f"https://{HOST}/{NAME}?",
    f"https://{HOST}/{NAME}#x",
    f"https://{HOST}/{NAME};x",
    f"https://{HOST}/{NAME}%00",
    f"https://{HOST}/?Action=GetCertificate&x={NAME}",
    f"https://{HOST}/SimpleNotificationService-.pem",
    f"https://{HOST}/SimpleNotificationService.pem",
    f"https://{HOST}/SimpleNotificationService-0123xyz.pem",
    f"https://{HOST}/SimpleNotificationService-../../etc/passwd.pem",
    f"https://{HOST}/SimpleNotificationService-0123.pem.exe",
    f"https://{HOST}/SimpleNotificationService-0123.PEM",
    f"https://{HOST}/simplenotificationservice-0123.pem",
    f"https://{HOST}/SimpleNotificationService-{'0' * 200}.pem",
    f"https://{HOST}/SimpleNotificationService-\uff10123.pem",
    # what surrounds it
    f" {GOOD}",
    f"{GOOD} ",
    f"{GOOD}\n",
    f"\n{GOOD}",
    f"{GOOD}\x00",
    f"{GOOD}\r\nHost: evil.example",
    f"https://\u017fns.eu-west-1.amazonaws.com/{NAME}",
    f"https://sns.eu-west-1.amaz\u043enaws.com/{NAME}",
    f"https://sns.eu-west-1\u3002amazonaws.com/{NAME}",
    "",
    " ",
    NAME,
)

SUBSCRIBE_URLS = (
    *(
        each.replace(f"/{NAME}", "/?Action=ConfirmSubscription&Token=x")
        for each in CERTIFICATE_URLS
        if each.endswith(f"/{NAME}") and "?" not in each
    ),
    f"https://{HOST}/",
    f"https://{HOST}",
    f"https://{HOST}?Action=ConfirmSubscription",
    f"https://{HOST}/?Action=ConfirmSubscription&Token=a b",
    f"https://{HOST}/?Action=ConfirmSubscription\r\nHost: evil.example",
    f"https://{HOST}/?Action=ConfirmSubscription\n",
    f"https://{HOST}/?Action=ConfirmSubscription&Token=\u00e9",
    f"https://{HOST}/?" + "x" * 5000,
)
