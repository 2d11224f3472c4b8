"""
Your own kernel, on strings
===========================

A kernel is any function ``k(X, Y)`` that returns the matrix of all values at once. The rows need
not be vectors. Here each row is a position in a list of words, and the kernel looks up the word.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_matrix

import nysboost as nb

# %%
# We generate words of two made-up languages: one has open syllables, the other has clusters of
# consonants.
rng = np.random.default_rng(0)


def word(language):
    """Return a word of two to four syllables."""
    starts, ends = {
        "open": (["k", "l", "m", "n", "p", "r", "t", "v"], ["a", "e", "i", "o", "u", "ia", "ua"]),
        "closed": (
            ["sk", "str", "br", "gl", "tr", "fr"],
            ["ant", "esk", "ols", "irt", "unk", "arg"],
        ),
    }[language]
    return "".join(rng.choice(starts) + rng.choice(ends) for _ in range(rng.integers(2, 5)))


languages = np.repeat(["open", "closed"], 400)
words = [word(language) for language in languages]

# %%
# The spectrum kernel counts the pairs of letters that two words share.
pairs = sorted({w[i : i + 2] for w in words for i in range(len(w) - 1)})
column = {pair: j for j, pair in enumerate(pairs)}
where = [(i, column[w[k : k + 2]]) for i, w in enumerate(words) for k in range(len(w) - 1)]
counts = csr_matrix((np.ones(len(where)), np.transpose(where)), shape=(len(words), len(pairs)))
lengths = np.sqrt(counts.multiply(counts).sum(axis=1)).A1


def shared_pairs(X, Y):
    """Return the cosine of the counts of pairs, for words given by their numbers."""
    left, right = (np.asarray(rows)[:, 0].astype(int) for rows in (X, Y))
    products = (counts[left] @ counts[right].T).toarray()
    return products / np.outer(lengths[left], lengths[right])


# %%
# Errors, eigenvectors and principal components are computed as for any kernel. The kernel has no
# derivative, so the landmarks are words.
numbers = np.arange(len(words))[:, None]
approx = nb.approximate(numbers, "joint", shared_pairs, n_components=40, random_state=0)
print(f"error {approx.relative_error():.3f};", "some landmarks:",
      ", ".join(words[i] for i in approx.landmarks.indices[:6]))  # fmt: skip
components = nb.KernelPCA(2, kernel=shared_pairs, n_landmarks=40, random_state=0).fit_transform(
    numbers
)

# %%
# The figure shows two principal components of the kernel, and some of the words.
figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
for language, colour in (("open", "#009988"), ("closed", "#CC3311")):
    chosen = languages == language
    axes.scatter(*components[chosen].T, s=10, color=colour, label=f"{language} syllables")
BEHIND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1}
for side in ("open", "closed"):
    members = np.flatnonzero((languages == side) & (np.char.str_len(words) < 13))
    for k, sign in ((0, 1), (0, -1), (1, 1), (1, -1)):
        i = members[np.argmax(sign * components[members, k])]
        beside = ((8 * sign, -3), "left" if sign > 0 else "right")
        offset, where = beside if k == 0 else ((0, 10 * sign - 3), "center")
        axes.annotate(words[i], components[i], xytext=offset, ha=where, fontsize=9,
                      textcoords="offset points", bbox=BEHIND)  # fmt: skip
axes.set(xlabel="first component", ylabel="second component")
axes.margins(x=0.2, y=0.12)
figure.legend(frameon=False, loc="outside lower center", ncols=2)
plt.show()

# %%
# The first component separates the two languages, although no labels were given.
