"""Anchors of headings as the repository's pages have them, so that links go to both."""
import re


def github(text, separator):
    text = re.sub(r"<[^>]*>", "", text).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", separator)
